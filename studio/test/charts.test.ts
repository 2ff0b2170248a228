import assert from "node:assert/strict";
import { test } from "node:test";
import type { MetricSeries } from "../src/api/types";
import { align, chooseXs, makeLine, PLAIN, unite, valueAt } from "../src/charts/alignment";
import { findSpan, refine } from "../src/charts/finer";
import { groupByPrefix, makeMatcher } from "../src/charts/grouping";
import { ChartLink, formatZoom, parseZoom } from "../src/charts/link";
import { append, isNumeric, NO_POINTS, type Points, splitByRank, thin, toPoints } from "../src/charts/points";
import { smooth } from "../src/charts/smoothing";
import { describeChart, findBest, guessGoal, summarize, tabulate } from "../src/charts/summaries";
import { formatCount, formatElapsed, padRange } from "../src/charts/ticks";

function makeSeries(values: unknown[], others: Partial<MetricSeries> = {}): MetricSeries {
  return {
    name: "loss",
    kind: "scalar",
    count: values.length,
    values,
    steps: values.map(() => null),
    times: values.map((_, n) => 100 + n),
    index: values.map((_, n) => n),
    ranks: values.map(() => 0),
    ...others,
  };
}

function makePoints(values: number[], steps?: number[]): Points {
  return toPoints(makeSeries(values, steps ? { steps } : {}));
}

test("values that are no numbers are gaps, and truth values count", () => {
  const { values } = toPoints(makeSeries([1, "NaN", "Infinity", null, true, "text"]));
  assert.deepEqual(values, [1, NaN, Infinity, NaN, 1, NaN]);
  assert.equal(isNumeric(makeSeries(["a", "b"])), false);
  assert.equal(isNumeric(makeSeries(["NaN"])), true);
  assert.equal(isNumeric(makeSeries([{ a: 1 }], { kind: "row" })), false);
});

test("the moving average begins at the first value and skips gaps", () => {
  assert.deepEqual(smooth([5, 5, 5], 0.9).map((each) => Number(each.toFixed(9))), [5, 5, 5]);
  const found = smooth([1, NaN, 3], 0.5);
  assert.equal(found[0], 1);
  assert.ok(Number.isNaN(found[1]));
  // (1 * 0.5 + 3) * 0.5 / (1 - 0.25)
  assert.ok(Math.abs((found[2] ?? 0) - 7 / 3) < 1e-12);
  assert.deepEqual(smooth([1, 2], 0), [1, 2]);
});

test("places are steps, and the position where no step was logged", () => {
  assert.deepEqual(chooseXs(makePoints([1, 2]), "step"), [0, 1]);
  assert.deepEqual(chooseXs(toPoints(makeSeries([1, 2, 3], { steps: [10, null, 30] })), "step"), [10, 10, 30]);
  assert.deepEqual(chooseXs(makePoints([1, 2]), "time"), [100, 101]);
  assert.deepEqual(chooseXs(makePoints([1, 2]), "relative"), [0, 1]);
  assert.deepEqual(chooseXs(makePoints([1, 2]), "relative", 90), [10, 11]);
});

test("steps that are logged again after a checkpoint take the later value", () => {
  assert.deepEqual(makeLine([1, 2, 3, 2, 3, 4], [1, 1, 1, 2, 2, 2]), { xs: [1, 2, 3, 4], ys: [1, 2, 2, 2] });
  assert.deepEqual(makeLine([0, 1, 10], [5, 6, 7], true), { xs: [1, 10], ys: [6, 7] });
  assert.deepEqual(makeLine([NaN, 1], [5, 6]), { xs: [1], ys: [6] });
});

test("series are laid over the union of their places", () => {
  const all = [{ points: makePoints([1, NaN, 3], [0, 2, 4]) }, { points: makePoints([7, 8], [1, 2]) }];
  const { xs, raw, smoothed } = align(all, PLAIN);
  assert.deepEqual(xs, [0, 1, 2, 4]);
  assert.deepEqual(raw, [[1, undefined, null, 3], [undefined, 7, 8, undefined]]);
  assert.deepEqual(smoothed, []);
  assert.equal(align(all, { ...PLAIN, smoothing: 0.5 }).smoothed.length, 2);
  assert.deepEqual(unite([[1, 2], [1, 2]]), [1, 2]);
  assert.deepEqual(unite([]), []);
});

test("a logarithmic axis leaves out what it cannot show", () => {
  const { raw } = align([{ points: makePoints([-1, 0, 5]) }], { ...PLAIN, logY: true });
  assert.deepEqual(raw, [[null, null, 5]]);
  assert.deepEqual(align([{ points: makePoints([1, 2]) }], { ...PLAIN, logX: true }).xs, [1]);
});

test("under the pointer stands the last value before it", () => {
  assert.equal(valueAt([1, undefined, undefined, 4], 2), 1);
  assert.equal(valueAt([undefined], 0), undefined);
  assert.equal(valueAt([1, null], 1), undefined);
});

test("ranks have lines of their own", () => {
  const found = splitByRank(makeSeries([1, 2, 3, 4], { ranks: [1, 0, 1, null] }));
  assert.deepEqual([...found.keys()], [null, 0, 1]);
  assert.deepEqual(found.get(1)?.values, [1, 3]);
  assert.deepEqual(found.get(1)?.index, [0, 1]);
});

test("new points come once", () => {
  const first = makePoints([1, 2]);
  const more = toPoints(makeSeries([2, 3], { index: [1, 2] }));
  assert.deepEqual(append(first, more).values, [1, 2, 3]);
  assert.equal(append(first, NO_POINTS), first);
  assert.deepEqual(append(NO_POINTS, first).values, [1, 2]);
});

test("thinning keeps the ends and the extremes", () => {
  const values = Array.from({ length: 100_000 }, (_, n) => Math.sin(n / 50));
  values[31_337] = 99;
  values[70_000] = -99;
  const kept = thin(makePoints(values), 1000);
  assert.ok(kept.values.length <= 1000, String(kept.values.length));
  assert.ok(kept.values.includes(99) && kept.values.includes(-99));
  assert.equal(kept.index[0], 0);
  assert.equal(kept.index.at(-1), 99_999);
  assert.ok(kept.index.every((each, n) => n === 0 || each > (kept.index[n - 1] ?? 0)));
  const gaps = thin(makePoints(Array.from({ length: 100 }, () => NaN)), 10);
  assert.ok(gaps.values.length > 2);
  assert.equal(thin(makePoints([1, 2, 3]), 1000).values.length, 3);
});

test("a million points are thinned without recursion or spreading", () => {
  const many = makePoints(Array.from({ length: 1_000_000 }, (_, n) => n % 97));
  assert.ok(thin(many, 2000).values.length <= 2000);
});

test("summaries name the last, smallest and largest", () => {
  const points = makePoints([3, 1, NaN, 2]);
  assert.deepEqual(summarize(points), { count: 4, last: 3, lowest: 1, highest: 0 });
  assert.equal(describeChart("loss", [{ label: "", points, count: 9 }]).split(",")[0], "loss. 9 values");
  assert.equal(describeChart("loss", [{ label: "", points }]), "loss. 4 values, last 2 at step 3, smallest 1 at step 1, largest 3 at step 0.");
  assert.equal(describeChart("loss", [{ label: "", points: NO_POINTS }]), "loss. no values yet.");
  const many = Array.from({ length: 12 }, (_, n) => ({ label: `run ${n}`, points }));
  assert.ok(describeChart("loss", many).endsWith("And 2 more series."));
});

test("what is better is read from the name", () => {
  const goals = ["train/loss", "val_rmse", "accuracy", "test/top-1 accuracy", "f1_score", "learning_rate", "epoch"].map(guessGoal);
  assert.deepEqual(goals, ["min", "min", "max", "max", "max", undefined, undefined]);
  assert.equal(findBest(makePoints([3, 1, 2]), "min"), 1);
  assert.equal(findBest(makePoints([3, 1, 2]), "max"), 0);
  assert.equal(findBest(makePoints([3, 1, 2]), undefined), -1);
});

test("a table of values leaves rows out evenly", () => {
  const xs = Array.from({ length: 1000 }, (_, n) => n);
  const table = tabulate(xs, [{ label: "a", cells: [1, null] }], { first: "Step", formatX: String, most: 10 });
  assert.equal(table.rows.length, 11);
  assert.deepEqual(table.rows[0], ["0", "1"]);
  assert.deepEqual(table.rows.at(-1), ["999", ""]);
  assert.equal(table.left, 989);
});

test("labels of axes are short", () => {
  assert.deepEqual([0.5, 90, 120, 5400, 7200, 200_000].map(formatElapsed), ["0.5 s", "1:30 min", "2 min", "1:30 h", "2 h", "2 d 7 h"]);
  assert.deepEqual([5, 9999, 20_000, 1_500_000, 2e9].map(formatCount), ["5", "9999", "20k", "1.5M", "2G"]);
});

test("metrics are grouped by the first part of their names", () => {
  const groups = groupByPrefix(["system/cpu", "train/loss", "lr", "val/loss", "train/acc", "/odd"].map((name) => ({ name })));
  assert.deepEqual(groups.map((each) => [each.prefix, each.items.length]), [["", 2], ["train", 2], ["val", 1], ["system", 1]]);
});

test("a search has all words, or is a regular expression", () => {
  assert.ok(makeMatcher("LOSS train")("train/loss"));
  assert.ok(!makeMatcher("loss val")("train/loss"));
  assert.ok(makeMatcher("/^val.*loss$/")("val/a/loss"));
  assert.ok(makeMatcher("/(/")("a /(/ b"));
  assert.ok(makeMatcher("")("anything"));
});

test("charts zoom together, and the zoom fits into an address", () => {
  const link = new ChartLink();
  const told: unknown[] = [];
  const stop = link.subscribe((zoom) => told.push(zoom));
  link.setZoom([1, 2]);
  link.setZoom([1, 2]);
  stop();
  link.setZoom(undefined);
  assert.deepEqual(told, [[1, 2]]);
  assert.deepEqual(parseZoom(formatZoom([0.1, 1e9])), [0.1, 1e9]);
  for (const wrong of ["", "1", "2~1", "a~b", "1~2~3", "1~Infinity"]) assert.equal(parseZoom(wrong), undefined);
});

test("a range has air, and room for labels even if the values differ by rounding only", () => {
  assert.deepEqual(padRange(0, 100), [-6, 106]);
  assert.deepEqual(padRange(0, 0), [-1, 1]);
  assert.deepEqual(padRange(null, null), [null, null]);
  const [low, high] = padRange(0.5, 0.5000000000000001);
  assert.ok((high ?? 0) - (low ?? 0) > 0.05);
});

const spaced = (index: readonly number[]) => ({ index, steps: index.map((each) => 10 * each), times: index, values: index });

test("a zoom asks for what lies between the points that it shows", () => {
  const coarse = spaced([0, 100, 200, 300]);
  assert.deepEqual(findSpan(coarse, coarse.steps, [1100, 1900]), [100, 201]);
  assert.deepEqual(findSpan(coarse, coarse.steps, [900, 2100]), [0, 301]);
  assert.deepEqual(findSpan(coarse, coarse.steps, [-50, 500]), [0, 101]);
  assert.equal(findSpan(coarse, coarse.steps, [5000, 6000]), undefined);
  const whole = spaced([0, 1, 2, 3]);
  assert.equal(findSpan(whole, whole.steps, [0, 15]), undefined);
});

test("finer points take the place of those that were there", () => {
  const coarse = spaced([0, 100, 200, 300]);
  assert.deepEqual(refine(coarse, spaced([100, 101, 102, 200])).index, [0, 100, 101, 102, 200, 300]);
  assert.deepEqual(refine(coarse, spaced([250, 299, 300])).steps, [0, 1000, 2000, 2500, 2990, 3000]);
  assert.equal(refine(coarse, undefined), coarse);
});
