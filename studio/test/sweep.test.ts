import assert from "node:assert/strict";
import { test } from "node:test";
import type { SweepView, TrialView } from "../src/api/types";
import { describeDecision, joinDecisions, parseDecision, parseDecisions } from "../src/pages/sweep/decisions";
import { countTrials, describeCorrelation, describeCounts, describeExpression, flattenParameters, listParameters, listSpace, makeDimensions, mergeChanges, rankTrials, sortTrials, wishOf } from "../src/pages/sweep/trials";

function trial(number: number, changes: Partial<TrialView> = {}): TrialView {
  return {
    number, run_id: `sweep_${number}`, status: "Completed", parameters: {}, best: null, last: null, reports: 0, series: [], started_at: null,
    ended_at: null, cut_interval: null, cut_reason: "", error: "", ...changes,
  };
}

function sweep(trials: TrialView[], changes: Partial<SweepView> = {}): SweepView {
  return {
    run_id: "sweep", experiment: "digits", status: "Running", metric: "accuracy", goal: "MAXIMIZE", sampling: "random", policy: "none",
    space: {}, max_total_runs: 9, max_concurrent_runs: 2, total: 9, max_duration_minutes: 60, started_at: 1, ended_at: null, ending: "",
    warnings: [], waiting_for: "", trials, ...changes,
  };
}

const LOG = `2026-11-17 12:00:00 sweep digits_1: up to 9 trials
2026-11-17 12:00:01 interval 3: run_7 best 0.42 < 0.61 - 0.1 = 0.51: cancelled
2026-11-17 12:00:02 interval 3: run_8 best 0.6 >= 0.61/(1+0.1) = 0.554545: continues
a line without a time: interval 3: run_1 best 0 < 1 - 0 = 1: cancelled
`;

test("decisions are read from the log", () => {
  assert.deepEqual(parseDecisions(LOG).map((each) => [each.trial, each.interval, each.isCut, each.at]), [
    [7, 3, true, "2026-11-17 12:00:01"],
    [8, 3, false, "2026-11-17 12:00:02"],
  ]);
  assert.equal(parseDecision(""), undefined);
});

test("a decision is a sentence with its numbers", () => {
  const say = (why: string, verdict = "cancelled") => {
    const decision = parseDecision(`interval 3: run_7 ${why}: ${verdict}`);
    return decision ? describeDecision(decision) : "";
  };
  assert.equal(say("best 0.42 < 0.61 - 0.1 = 0.51"), "Cut trial 7 at interval 3: 0.42 is worse than the best 0.61 by more than the slack 0.1 (limit 0.51).");
  assert.equal(say("best 0.6 <= 0.55 + 0.1 = 0.65", "continues"), "Kept trial 7 at interval 3: 0.6 is within the slack 0.1 of the best 0.55 (limit 0.65).");
  assert.equal(
    say("best 0.42 < 0.61/(1+0.1) = 0.554545"),
    "Cut trial 7 at interval 3: 0.42 is worse than the limit 0.554545, which is the best 0.61 with the slack factor 0.1 (0.61 ÷ (1 + 0.1)).",
  );
  assert.equal(say("best 3 > 2*(1+0.2) = 2.4").includes("2 × (1 + 0.2)"), true);
  assert.equal(say("best no number < 0.61 - 0.1 = 0.51").includes("no number is worse than the best 0.61"), true);
  assert.equal(say("best 1e-05 < 0.5, the median of 4 averages"), "Cut trial 7 at interval 3: its best 1e-05 is worse than 0.5, the median of the averages of 4 trials.");
  assert.equal(say("best 0.1 is number 9 of 10, among the last 2 (20 %)"), "Cut trial 7 at interval 3: its best 0.1 ranks 9 of 10, among the last 2 (20 %).");
  assert.equal(say("has no number to compare with", "continues"), "Kept trial 7 at interval 3: has no number to compare with.");
});

test("a cut that the log and the trial have is one decision, and the newest is first", () => {
  const own = parseDecision("interval 3: run_7 best 0.42 < 0.61 - 0.1 = 0.51: cancelled");
  const old = parseDecision("interval 1: run_2 best 0.1 < 0.61 - 0.1 = 0.51: cancelled");
  assert.ok(own && old);
  assert.deepEqual(joinDecisions(parseDecisions(LOG), [old, own]).map((each) => each.trial), [8, 7, 2]);
});

test("changes are put into what is known", () => {
  const known = { view: sweep([trial(0), trial(1)]), version: "1.5" };
  const merged = mergeChanges(known, { view: sweep([trial(1, { best: 0.5 }), trial(2)]), version: "1.6", whole: false });
  assert.deepEqual(merged.view.trials.map((each) => [each.number, each.best]), [[0, null], [1, 0.5], [2, null]]);
  // Nothing changed: the same list, so that nothing is drawn again.
  assert.equal(mergeChanges(known, { view: sweep([]), version: "1.7", whole: false }).view.trials, known.view.trials);
  assert.equal(mergeChanges(known, { view: sweep([]), version: "", whole: true }).view.trials.length, 0);
});

test("the best is first, and what has no value is last, active ones before ended ones", () => {
  const trials = [trial(0, { best: 0.1 }), trial(1, { status: "Failed" }), trial(2, { best: 0.9 }), trial(3, { status: "Running" }), trial(4, { best: "NaN" })];
  assert.deepEqual(rankTrials(sweep(trials)).map((each) => each.number), [2, 0, 3, 1, 4]);
  assert.deepEqual(rankTrials(sweep(trials, { goal: "MINIMIZE" })).map((each) => each.number), [0, 2, 3, 1, 4]);
});

test("trials are sorted by a parameter, and those without it are last in both directions", () => {
  const trials = [trial(0, { parameters: { lr: 10 } }), trial(1), trial(2, { parameters: { lr: 9 } })];
  assert.deepEqual(sortTrials(sweep(trials), "parameter:lr").map((each) => each.number), [2, 0, 1]);
  assert.deepEqual(sortTrials(sweep(trials), "-parameter:lr").map((each) => each.number), [0, 2, 1]);
  assert.deepEqual(sortTrials(sweep(trials), "-trial").map((each) => each.number), [2, 1, 0]);
});

const SPACE = {
  "--lr": ["loguniform", [-9, -1]],
  "--units": ["choice", [[64, 8]]],
  "--model": ["choice", [[{ "--kind": "sgd", "--momentum": ["uniform", [0, 1]] }, { "--kind": "adam" }]]],
};

test("parameters of branches stand beside the others", () => {
  const trials = [
    trial(0, { parameters: { "--lr": 0.1, "--units": 64, "--model": { "--kind": "sgd", "--momentum": 0.5 } }, best: 0.5 }),
    trial(1, { parameters: { "--lr": 0.01, "--units": 8, "--model": { "--kind": "adam" } } }),
  ];
  const view = sweep(trials, { space: SPACE });
  assert.deepEqual(flattenParameters(trials[0]?.parameters ?? {}), { "--lr": 0.1, "--units": 64, "--kind": "sgd", "--momentum": 0.5 });
  assert.deepEqual(listParameters(view), ["--lr", "--units", "--kind", "--momentum"]);
  const dimensions = makeDimensions(view, trials);
  assert.deepEqual(dimensions.map((each) => [each.label, each.scale.kind]), [["lr", "log"], ["units", "category"], ["kind", "category"], ["momentum", "linear"], ["accuracy", "linear"]]);
  assert.deepEqual(dimensions[3]?.values, [0.5, null]);
  assert.deepEqual(dimensions[1]?.scale.categories, ["8", "64"]);
  assert.equal(wishOf(SPACE, "--momentum"), "linear");
});

test("a space is described in words", () => {
  assert.equal(describeExpression(["uniform", [0, 0.6]]), "uniform from 0 to 0.6");
  assert.equal(describeExpression(["qloguniform", [0, 2, 1]]), "log-uniform from 1 to 7.3891 in steps of 1");
  assert.equal(describeExpression(["choice", [["sgd", 3]]]), "one of sgd, 3");
  assert.equal(describeExpression(["randint", [5]]), "a whole number from 0 to 4");
  assert.deepEqual(listSpace(SPACE).map((each) => [each.name, each.depth]).slice(2), [["--model", 0], ["branch 1", 1], ["--kind", 2], ["--momentum", 2], ["branch 2", 1], ["--kind", 2]]);
});

test("trials are counted in words", () => {
  const trials = [trial(0), trial(1, { status: "Canceled", cut_interval: 3 }), trial(2, { status: "Canceled" }), trial(3, { status: "Queued" })];
  assert.equal(describeCounts(countTrials(trials)), "1 running or waiting, 1 completed, 1 cut, 1 cancelled");
  assert.equal(describeCounts(countTrials([])), "no trial yet");
});

test("a correlation is said in words if there is one", () => {
  assert.equal(describeCorrelation(0.5, "loss"), "larger values, larger loss");
  assert.equal(describeCorrelation(-0.5, "loss"), "larger values, smaller loss");
  assert.equal(describeCorrelation(null, "loss"), "");
  assert.equal(describeCorrelation(0.1, "loss"), "");
});
