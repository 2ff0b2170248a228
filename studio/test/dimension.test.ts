import assert from "node:assert/strict";
import { test } from "node:test";
import { applyBrushes, changeBrush, formatBrushes, makeBrush, matches, parseBrushes, placeBrush } from "../src/charts/brush";
import { colorRuns, orderRuns } from "../src/charts/coloring";
import { makeDimension, makeScale, makeTicks, placeValue, placeValues, toValue } from "../src/charts/dimension";
import { findNearestLine, findNearestPoint } from "../src/charts/nearest";
import { chooseShade, makeShades, SHADES } from "../src/charts/shade";

const rate = makeDimension("lr", "lr", [0.001, "0.01", 0.1, 1, null]);
const optimizer = makeDimension("optimizer", "optimizer", ["sgd", "adam", "sgd", null, "adam"]);

test("values of runs become numbers where they are numbers", () => {
  assert.deepEqual(["0.5", "1e-3", " ", "adam", true, "NaN", null, [1, 2]].map(toValue), [0.5, 0.001, " ", "adam", "true", null, null, "[1,2]"]);
  assert.equal(toValue(Number.POSITIVE_INFINITY), null);
});

test("an axis is logarithmic if values span three decades or if that is wished", () => {
  assert.equal(rate.scale.kind, "log");
  assert.equal(makeScale([1, 10]).kind, "linear");
  assert.equal(makeScale([1, 10], "log").kind, "log");
  assert.equal(makeScale([1e-9, 1], "linear").kind, "linear");
  // Zero is not on a logarithmic axis.
  assert.equal(makeScale([0, 10], "log").kind, "linear");
  assert.equal(makeScale([null, null]).kind, "linear");
});

test("one value has a place in the middle of its axis", () => {
  assert.equal(placeValue(makeScale([7, 7]), 7), 0.5);
  assert.equal(placeValue(makeScale([0]), 0), 0.5);
  assert.ok(Math.abs((placeValue(makeScale([0.01], "log"), 0.01) ?? 0) - 0.5) < 1e-9);
});

test("categories are in their natural order, and numbers among them are categories too", () => {
  assert.deepEqual(makeDimension("a", "a", ["x10", "x9", 3, null]).scale.categories, ["3", "x9", "x10"]);
  assert.deepEqual(makeDimension("a", "a", [64, 8, 8], "category").values, ["64", "8", "8"]);
  assert.deepEqual([...placeValues(optimizer)].map((each) => (Number.isNaN(each) ? null : each)), [0.75, 0.25, 0.75, null, 0.25]);
});

test("ticks are round and within the axis", () => {
  assert.deepEqual(makeTicks(makeScale([0, 0.93]), 5).map((each) => each.label), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
  assert.deepEqual(makeTicks(rate.scale, 6).map((each) => each.label), ["0.001", "0.01", "0.1", "1"]);
  assert.deepEqual(makeTicks(makeScale([1e-7, 1e-1]), 3).map((each) => each.label), ["1e-7", "1e-4", "0.1"]);
  assert.deepEqual(makeTicks(makeScale([-3, 1]), 4).map((each) => each.label), ["-3", "-2", "-1", "0", "1"]);
  for (const tick of makeTicks(makeScale([0.37, 0.9123]), 7)) assert.ok(tick.at >= -1e-9 && tick.at <= 1 + 1e-9);
  // Less than a decade of a logarithmic axis has no two powers of ten.
  assert.ok(makeTicks(makeScale([2, 7], "log"), 4).length >= 2);
  assert.equal(makeTicks(makeDimension("a", "a", Array.from({ length: 100 }, (_, index) => `c${index}`)).scale, 10).length, 10);
});

test("a brush chooses a range of numbers or some categories", () => {
  assert.deepEqual(makeBrush(makeScale([0, 10]), 0.7, 0.2), { from: 2, to: 7 });
  assert.deepEqual(makeBrush(optimizer.scale, 0, 0.4), { of: ["adam"] });
  assert.deepEqual(makeBrush(optimizer.scale, 0.4, 0.6), { of: ["adam", "sgd"] });
  assert.equal(makeBrush(makeScale([0, 10]), 0.5, 0.5), undefined);
  assert.deepEqual(makeBrush(makeScale([0, 10]), -3, 9), { from: 0, to: 10 });
  assert.ok(!matches({ from: 0, to: 1 }, null));
  assert.ok(!matches({ of: ["a"] }, "b"));
  // Rounding does not exclude the run at the end.
  assert.ok(matches({ from: 0.1, to: 0.3 }, 0.1 + 0.2));
});

test("runs have to be within all brushes", () => {
  const brushes = { lr: { from: 0.005, to: 0.2 }, optimizer: { of: ["sgd"] }, other: { of: ["x"] } };
  assert.deepEqual([...applyBrushes([rate, optimizer], brushes, 5)], [0, 0, 1, 0, 0]);
  assert.deepEqual([...applyBrushes([rate, optimizer], changeBrush(brushes, "lr", undefined), 5)], [1, 0, 1, 0, 0]);
  assert.deepEqual([...applyBrushes([rate], {}, 5)], [1, 1, 1, 1, 1]);
});

test("brushes are drawn where they were made", () => {
  const [place] = placeBrush(rate.scale, makeBrush(rate.scale, 0.25, 0.5) ?? { of: [] });
  assert.ok(Math.abs((place?.[0] ?? 0) - 0.25) < 1e-9 && Math.abs((place?.[1] ?? 0) - 0.5) < 1e-9);
  assert.deepEqual(placeBrush(optimizer.scale, { of: ["sgd"] }), [[0.5, 1]]);
});

test("the run at the end of the axis is still chosen after the address was read again", () => {
  const scale = makeScale([0.123456789012345, 0.987654321098765]);
  const brush = makeBrush(scale, 0.5, 1);
  assert.ok(brush && matches(parseBrushes(formatBrushes({ a: brush }))["a"] ?? { of: [] }, 0.987654321098765));
});

test("brushes survive the address, and nonsense does not", () => {
  const brushes = { "--lr": { from: 0.1, to: 0.25 }, 'a"b': { of: ["<x>"] } };
  assert.deepEqual(parseBrushes(formatBrushes(brushes)), brushes);
  assert.equal(formatBrushes({}), "");
  for (const text of ["", "[", "[1]", "3", '{"a":1,"b":{"from":"x","to":2},"c":{"from":3,"to":2},"d":null}']) assert.deepEqual(parseBrushes(text), {});
});

test("the nearest line is found between its axes, and only among those that match", () => {
  const places = [Float32Array.of(0, 100), Float32Array.of(100, 0), Float32Array.of(50, 60)];
  const axes = [0, 100, 200];
  assert.equal(findNearestLine(places, axes, 25, 27, 8), 0);
  assert.equal(findNearestLine(places, axes, 25, 73, 8), 1);
  assert.equal(findNearestLine(places, axes, 200, 58, 8), 1);
  assert.equal(findNearestLine(places, axes, 25, 50, 8), undefined);
  assert.equal(findNearestLine(places, axes, 25, 27, 8, Uint8Array.of(0, 1)), undefined);
  assert.equal(findNearestLine([], [], 25, 27, 8), undefined);
});

test("the nearest point is found, and points without a place are not", () => {
  const [xs, ys] = [Float32Array.of(10, 50, Number.NaN), Float32Array.of(10, 50, 12)];
  assert.equal(findNearestPoint(xs, ys, 13, 12, 10), 0);
  assert.equal(findNearestPoint(xs, ys, 30, 30, 10), undefined);
});

function contrast(color: string, background: number): number {
  const [r, g, b] = (color.match(/\d+/g) ?? []).map(Number).map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
  return (Math.max(light, background) + 0.05) / (Math.min(light, background) + 0.05);
}

test("shades differ, can be seen on their page, and the best stands out most", () => {
  for (const [isDark, background] of [[false, 1], [true, 0.0085]] as const) {
    const shades = makeShades(isDark);
    assert.equal(new Set(shades).size, SHADES);
    const contrasts = shades.map((each) => contrast(each, background));
    assert.ok(Math.min(...contrasts) > 2, String(Math.min(...contrasts)));
    assert.equal(Math.max(...contrasts), contrasts[SHADES - 1]);
  }
  assert.equal(chooseShade(1, true), SHADES - 1);
  assert.equal(chooseShade(1, false), 0);
  assert.equal(chooseShade(7, true), SHADES - 1);
});

test("runs are coloured by numbers or categories, and the best is drawn last", () => {
  const color = { dimension: rate, isHighBetter: false };
  const colors = colorRuns(color, false, (name) => name);
  assert.equal(colors[4], "--line-strong");
  assert.equal(new Set(colors).size, 5);
  assert.deepEqual([...orderRuns(color)], [4, 3, 2, 1, 0]);
  assert.deepEqual(colorRuns({ dimension: optimizer, isHighBetter: true }, false, (name) => name), ["--series-2", "--series-1", "--series-2", "--line-strong", "--series-1"]);
});
