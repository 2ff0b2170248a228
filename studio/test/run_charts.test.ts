import assert from "node:assert/strict";
import { test } from "node:test";
import type { Curve, MetricSummary } from "../src/api/types";
import { curveToPoints, countInRank } from "../src/charts/points";
import { addCurves, MetricFeed, MOST_POINTS, nextIndex } from "../src/pages/run/charts/feed";
import { readRows, readStructured } from "../src/pages/run/charts/structured";
import { countRanks, readSpec } from "../src/pages/run/run_words";

function makeCurve(name: string, from: number, values: (number | null)[], others: Partial<Curve> = {}): Curve {
  const index = values.map((_, n) => from + n);
  return { run_id: "r", name, count: from + values.length, rank: null, values, steps: [], times: index, index, ...others };
}

test("a feed asks for the metrics in view, each from where it ended", async () => {
  const logged = [1, 2];
  const asked: Record<string, number>[] = [];
  const feed = new MetricFeed({
    readSummaries: () => Promise.resolve([{ name: "loss", count: logged.length } as MetricSummary]),
    readCurves: (since) => {
      asked.push({ ...since });
      const first = since["loss"] ?? 0;
      return Promise.resolve("loss" in since ? [makeCurve("loss", first, logged.slice(first))] : []);
    },
    pause: () => Promise.resolve(),
    onError: (error) => assert.ok(false, String(error)),
  });
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve));
  };
  const values = () => feed.linesOf("loss")?.[0]?.points.values ?? [];
  const forget = feed.want("loss");
  await until(() => values().length === 2);
  assert.equal(feed.summaries, undefined);
  logged.push(3);
  feed.update();
  await until(() => values().length === 3);
  assert.deepEqual(values(), [1, 2, 3]);
  assert.deepEqual(asked.at(-1), { loss: 2 });
  const same = feed.linesOf("loss");
  feed.update();
  await until(() => asked.at(-1)?.["loss"] === 3);
  assert.equal(feed.linesOf("loss"), same);
  forget();
  const before = asked.length;
  logged.push(4);
  feed.update();
  await until(() => feed.summaries?.[0]?.count === 4);
  assert.equal(asked.length, before);
  feed.close();
});

test("a feed goes on after an error", async () => {
  const errors: unknown[] = [];
  const feed = new MetricFeed({
    readSummaries: () => (errors.length ? Promise.resolve([]) : Promise.reject(new Error("down"))),
    readCurves: () => Promise.resolve([]),
    pause: () => Promise.resolve(),
    onError: (error) => {
      errors.push(error);
      feed.update();
    },
  });
  feed.update();
  while (!feed.summaries) await new Promise((resolve) => setTimeout(resolve));
  assert.equal(errors.length, 1);
  feed.close();
});

test("a long live series stays short enough to draw", () => {
  let lines = addCurves(undefined, [makeCurve("a", 0, Array.from({ length: 3000 }, (_, n) => n))]);
  for (let from = 3000; from < 30_000; from += 1000) {
    lines = addCurves(lines, [makeCurve("a", from, Array.from({ length: 1000 }, (_, n) => from + n))]);
  }
  const points = lines[0]?.points;
  assert.ok((points?.index.length ?? 0) <= 2 * MOST_POINTS);
  assert.equal(points?.index.at(-1), 29_999);
  assert.equal(nextIndex(lines), 30_000);
  assert.equal(nextIndex(undefined), 0);
});

test("ranks are told apart, and counted each for itself", () => {
  const curves = [makeCurve("a", 0, [1, 2], { rank: 1, index: [1, 3], count: 2 }), makeCurve("a", 0, [3, 4], { rank: 0, index: [0, 2], count: 2 })];
  const lines = addCurves(undefined, curves);
  assert.deepEqual(lines.map((line) => line.rank), [0, 1]);
  assert.deepEqual(lines.map((line) => countInRank(line.points, line.count, 2).index), [[0, 1], [0, 1]]);
  assert.deepEqual(countInRank(curveToPoints(makeCurve("a", 10, [1, 2])), 99, 2).index, [5, 5]);
});

test("structured metrics are read by their schema", () => {
  const matrix = readStructured(JSON.stringify({ schema_type: "confusion_matrix", data: { class_labels: ["a"], matrix: [[1, 2], [3, 4]] } }));
  assert.deepEqual(matrix, { kind: "matrix", labels: ["a", "1"], rows: [[1, 2], [3, 4]] });
  const roc = readStructured(JSON.stringify({ schema_type: "accuracy_table", data: { probability_tables: [[[1, 0, 1, 0], [1, 1, 0, 0]]] } }));
  assert.deepEqual(roc.kind === "lines" && roc.lines[0], { label: "0", xs: [0, 1], ys: [1, 1] });
  const bars = readStructured(JSON.stringify({ schema_type: "residuals", data: { bin_edges: [0, 1, 2], bin_counts: [3, 4], mean: 1, stddev: 2 } }));
  assert.deepEqual(bars, { kind: "bars", edges: [0, 1, 2], counts: [3, 4], note: "mean 1, deviation 2" });
  const predicted = readStructured(JSON.stringify({ schema_type: "predictions", data: { bin_edges: [0, 2], bin_averages: [5] } }));
  assert.deepEqual(predicted.kind === "lines" && predicted.lines[0]?.xs, [1]);
});

test("what does not fit its schema is text", () => {
  for (const wrong of ["nonsense", "[]", '{"schema_type":"confusion_matrix","data":{"matrix":[["<b>"]]}}', '{"schema_type":"constructor","data":{}}']) {
    assert.equal(readStructured(wrong).kind, "text", wrong);
  }
});

test("rows become columns", () => {
  const table = readRows("t", [{ a: 1, b: "x" }, { a: 2 }, 7]);
  assert.deepEqual(table.columns, ["a", "b", "t"]);
  assert.deepEqual(table.rows, [[1, "x", undefined], [2, undefined, undefined], [undefined, undefined, 7]]);
  assert.deepEqual(table.numeric, ["a", "t"]);
});

test("a specification says how many ranks there are", () => {
  assert.equal(countRanks(""), 1);
  assert.equal(countRanks('{"node_count":2,"distribution":{"kind":"mpi","process_count_per_node":3}}'), 6);
  assert.equal(countRanks('{"node_count":2,"distribution":{"kind":"torch","process_count":4}}'), 4);
  assert.equal(readSpec("{"), undefined);
});
