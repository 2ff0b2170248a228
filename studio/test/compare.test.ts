import assert from "node:assert/strict";
import { test } from "node:test";
import type { MetricSummary, RunRecord } from "../src/api/types";
import { guessGoal } from "../src/charts/summaries";
import { chooseAxes, formatAxes, makeAxes } from "../src/pages/compare/axes";
import { pairLines, parseUnified } from "../src/pages/compare/diff";
import { countMetrics, findBest, flatten, formatDelta, keepDifferent, makeGroups, parseRuns, readArguments, readSpec } from "../src/pages/compare/rows";

const DIFF = `--- a/train.py
+++ b/train.py
@@ -4,4 +4,5 @@
 same
-old 1
-old 2
+new 1
+new 2
+new 3
 end
@@ -20,2 +21,1 @@
 tail
--- not a head
`;

test("a unified difference has line numbers, and tells how many equal lines are left out", () => {
  const [first, second] = parseUnified(DIFF);
  assert.equal(first?.skipped, 3);
  assert.deepEqual(first?.lines.map((each) => [each.kind, each.left, each.right, each.text]), [
    ["same", 4, 4, "same"],
    ["removed", 5, undefined, "old 1"],
    ["removed", 6, undefined, "old 2"],
    ["added", undefined, 5, "new 1"],
    ["added", undefined, 6, "new 2"],
    ["added", undefined, 7, "new 3"],
    ["same", 7, 8, "end"],
  ]);
  assert.equal(second?.skipped, 12);
  assert.deepEqual(second?.lines[1], { kind: "removed", left: 21, right: undefined, text: "-- not a head" });
});

test("a new file begins with its first line", () => {
  const [hunk] = parseUnified("--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n");
  assert.deepEqual(hunk, { skipped: 0, lines: [{ kind: "added", left: undefined, right: 1, text: "a" }, { kind: "added", left: undefined, right: 2, text: "b" }] });
  assert.deepEqual(parseUnified(""), []);
});

test("changed lines stand side by side", () => {
  const pairs = pairLines(parseUnified(DIFF)[0]?.lines ?? []);
  assert.deepEqual(pairs.map((each) => [each.left?.text, each.right?.text]), [["same", "same"], ["old 1", "new 1"], ["old 2", "new 2"], [undefined, "new 3"], ["end", "end"]]);
});

test("arguments have the names that filters use", () => {
  const given = { command: ["python", "train.py"], arguments: ["--lr", "0.1", "--batch-size=32", "depth=3", "--quiet", "--shift", "-1", "--layers", "64", "32"] };
  assert.deepEqual(readArguments(given), { lr: "0.1", batch_size: "32", depth: "3", quiet: "true", shift: "-1", layers: "64 32", "word 1": "python", "word 2": "train.py" });
  assert.deepEqual(readArguments(readSpec("no json")), {});
  assert.deepEqual(flatten({ a: { b: 1, c: ["x", "y"] }, d: null, e: [] }), { "a.b": "1", "a.c": "x, y" });
});

function run(id: string, changes: Partial<RunRecord> = {}, metrics: Partial<MetricSummary>[] = []) {
  const record: RunRecord = {
    id, experiment: "digits", status: "Completed", created_at: 0, seq: 1, number: 1, type: "", parent_id: null, display_name: "", description: "", target: "local",
    spec: "", snapshot_id: "", started_at: 1, ended_at: 3, waiting_for: "", nodes: [], error: null, warnings: [], submitted_by: "me", tags: {}, properties: {}, archived_at: null,
    params: {}, ...changes,
  };
  return { record, metrics: metrics.map((each) => ({ name: "", kind: "scalar", count: 1, last: null, minimum: null, maximum: null, ...each })) };
}

const RUNS = [
  run("a", { spec: JSON.stringify({ arguments: ["--lr", "0.1", "--seed", "1"], environment: { pip_packages: ["a"] } }), tags: { toString: "x" } }, [{ name: "accuracy", last: 0.8 }, { name: "loss", last: 0.3 }]),
  run("b", { spec: JSON.stringify({ arguments: ["--lr", "0.2", "--seed", "1"], environment: { pip_packages: ["a"] } }) }, [{ name: "accuracy", last: 0.9 }, { name: "loss", last: 0.3 }]),
];

test("only what differs is kept, and the best value of each row is marked", () => {
  const groups = makeGroups(RUNS, "last", guessGoal);
  const different = keepDifferent(groups);
  assert.deepEqual(different.map((each) => [each.title, each.rows.map((row) => row.name)]), [["Results", ["accuracy"]], ["Arguments", ["lr"]], ["Tags", ["toString"]]]);
  assert.deepEqual(different[0]?.rows[0]?.best, [1]);
  assert.deepEqual(different[2]?.rows[0]?.cells, ["x", undefined]);
  assert.ok(groups.some((each) => each.title === "Environment"));
});

test("the best is known only among different numbers with a goal", () => {
  assert.deepEqual(findBest([1, 2, 1], "min"), [0, 2]);
  assert.deepEqual(findBest([1, undefined, 2], "max"), [2]);
  assert.deepEqual(findBest([1, 1], "max"), []);
  assert.deepEqual(findBest([1, 2], undefined), []);
});

test("axes are what differs and what came of it", () => {
  const axes = makeAxes(makeGroups(RUNS, "last", guessGoal));
  assert.deepEqual(chooseAxes(axes, "").map((each) => each.label), ["lr", "accuracy", "loss"]);
  const both = makeAxes([...makeGroups(RUNS, "last", guessGoal), { title: "Results", rows: [] }].map((group) => (group.title === "Results" ? { ...group, rows: group.rows.map((row) => ({ ...row, name: "lr" })) } : group)));
  assert.equal(both.results[0]?.label, "lr (metric)");
  const chosen = axes.results.slice(0, 1);
  assert.deepEqual(chooseAxes(axes, formatAxes(chosen)), chosen);
});

test("runs in the address are taken once, and fifty at most", () => {
  assert.deepEqual(parseRuns("a, b,,a"), ["a", "b"]);
  assert.equal(parseRuns(Array.from({ length: 80 }, (_, index) => `r${index}`).join(",")).length, 50);
  assert.equal(formatDelta(0.9, 0.8), "+0.1");
  assert.equal(formatDelta(1, 3), "−2");
  assert.equal(formatDelta(1, undefined), "");
});

test("metrics are counted over the runs that have numbers of them", () => {
  const runs = [run("a", {}, [{ name: "b10", maximum: 1 }, { name: "b9", maximum: 1 }, { name: "words" }]), run("b", {}, [{ name: "b9", maximum: 2 }])];
  assert.deepEqual([...countMetrics(runs)], [["b9", 2], ["b10", 1]]);
});
