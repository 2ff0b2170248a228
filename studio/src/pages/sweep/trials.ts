/** The trials of a sweep as the page shows them. No requests, no elements. */
import type { SweepView, TrialView } from "../../api/types";
import { type Dimension, type Kind, makeDimension } from "../../charts/dimension";
import { formatNumber, toNumber } from "../../text/numbers";
import { isActive } from "../../text/status";

export interface SweepState {
  view: SweepView;
  /** What the next request for changes says it has. */
  version: string;
}

/** What is known with a newer answer put into it. Without `whole`, the answer has only the trials that changed. */
export function mergeChanges(known: SweepState | undefined, answer: { view: SweepView; version: string; whole: boolean }): SweepState {
  const { view, version, whole } = answer;
  if (whole || !known) return { view, version };
  if (!view.trials.length) return { view: { ...view, trials: known.view.trials }, version };
  const byNumber = new Map(known.view.trials.map((each) => [each.number, each]));
  for (const each of view.trials) byNumber.set(each.number, each);
  return { view: { ...view, trials: [...byNumber.values()].sort((a, b) => a.number - b.number) }, version };
}

export function isHighBetter(view: SweepView): boolean {
  return view.goal === "MAXIMIZE";
}

/** Best first; those without a value last, with active ones before ended ones. */
export function rankTrials(view: SweepView): TrialView[] {
  const sign = isHighBetter(view) ? -1 : 1;
  const key = (trial: TrialView) => {
    const best = toNumber(trial.best);
    return Number.isNaN(best) ? [1, isActive(trial.status) ? 0 : 1, trial.number] : [0, sign * best, trial.number];
  };
  return view.trials.map((trial) => ({ trial, key: key(trial) })).sort((a, b) => compareKeys(a.key, b.key)).map((each) => each.trial);
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < a.length; index++) {
    const [left = 0, right = 0] = [a[index], b[index]];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/** Parameters of a trial by name. Those of a chosen branch stand beside the others. */
export function flattenParameters(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const found: [string, unknown][] = [];
  for (const [name, value] of Object.entries(given)) {
    if (isRecord(value)) found.push(...Object.entries(flattenParameters(value)));
    else found.push([name, value]);
  }
  return Object.fromEntries(found);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The names of all parameters, in the order of the space; what only trials have comes last. */
export function listParameters(view: SweepView): string[] {
  const names = new Set<string>();
  collectNames(view.space, names);
  for (const trial of view.trials) for (const name of Object.keys(flattenParameters(trial.parameters))) names.add(name);
  return [...names];
}

function collectNames(space: Readonly<Record<string, unknown>>, names: Set<string>): void {
  for (const [name, expression] of Object.entries(space)) {
    const branches = branchesOf(expression);
    if (branches.length) for (const each of branches) collectNames(each, names);
    else names.add(name);
  }
}

function branchesOf(expression: unknown): Record<string, unknown>[] {
  const options = Array.isArray(expression) && expression[0] === "choice" ? expression[1]?.[0] : undefined;
  return Array.isArray(options) && options.length && options.every(isRecord) ? options : [];
}

/** "--batch-size" is shown as "batch-size". */
export function labelOf(parameter: string): string {
  return parameter.replace(/^-+/, "") || parameter;
}

const MOST_CHOICES = 12;

/** How the axis of a parameter is scaled: as it was sampled. */
export function wishOf(space: Readonly<Record<string, unknown>>, name: string): Kind | undefined {
  const expression = findExpression(space, name);
  if (!Array.isArray(expression)) return undefined;
  const kind = String(expression[0]);
  if (kind.includes("log")) return "log";
  if (kind !== "choice") return "linear";
  const options = expression[1]?.[0];
  return Array.isArray(options) && options.length <= MOST_CHOICES ? "category" : undefined;
}

function findExpression(space: Readonly<Record<string, unknown>>, name: string): unknown {
  for (const [each, expression] of Object.entries(space)) {
    if (each === name) return expression;
    for (const branch of branchesOf(expression)) {
      const found = findExpression(branch, name);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

export const BEST = "best value";

/** A dimension for each parameter, and the best value of the metric as the last one, for trials in this order. */
export function makeDimensions(view: SweepView, trials: readonly TrialView[]): Dimension[] {
  const flat = trials.map((each) => flattenParameters(each.parameters));
  const found = listParameters(view).map((name) =>
    makeDimension(name, labelOf(name), flat.map((each) => each[name]), wishOf(view.space, name)),
  );
  return [...found, makeDimension(BEST, view.metric, trials.map((each) => each.best))];
}

/** An expression of the space in words: "uniform from 0 to 0.6". */
export function describeExpression(expression: unknown): string {
  if (!Array.isArray(expression)) return `always ${JSON.stringify(expression)}`;
  const [kind, given] = expression as [unknown, unknown];
  const values = Array.isArray(given) ? given : [];
  const [a, b, q] = values.map((each) => (typeof each === "number" ? formatNumber(each) : String(each)));
  const steps = q === undefined ? "" : ` in steps of ${q}`;
  switch (kind) {
    case "choice":
      return branchesOf(expression).length ? `one of ${branchesOf(expression).length} branches` : `one of ${(values[0] as unknown[] | undefined ?? []).map(formatOption).join(", ")}`;
    case "randint":
      return `a whole number from 0 to ${Number(values[0]) - 1}`;
    case "uniform":
    case "quniform":
      return `uniform from ${a} to ${b}${steps}`;
    case "loguniform":
    case "qloguniform":
      return `log-uniform from ${formatNumber(Math.exp(Number(values[0])))} to ${formatNumber(Math.exp(Number(values[1])))}${steps}`;
    case "normal":
    case "qnormal":
      return `normal with mean ${a} and deviation ${b}${steps}`;
    case "lognormal":
    case "qlognormal":
      return `log-normal: the logarithm has mean ${a} and deviation ${b}${steps}`;
    default:
      return JSON.stringify(expression);
  }
}

function formatOption(option: unknown): string {
  return typeof option === "number" ? formatNumber(option) : typeof option === "string" ? option : JSON.stringify(option);
}

/** The space as rows of name, expression and depth: branches are indented. */
export function listSpace(space: Readonly<Record<string, unknown>>, depth = 0): { name: string; text: string; depth: number }[] {
  return Object.entries(space).flatMap(([name, expression]) => {
    const branches = branchesOf(expression);
    const own = { name, text: describeExpression(expression), depth };
    return [own, ...branches.flatMap((each, index) => [{ name: `branch ${index + 1}`, text: "", depth: depth + 1 }, ...listSpace(each, depth + 2)])];
  });
}

/** Order of the table: "best", or the id of a dimension; "-" before it turns it round. */
export function sortTrials(view: SweepView, order: string): TrialView[] {
  const ranked = rankTrials(view);
  const isDown = order.startsWith("-");
  const name = isDown ? order.slice(1) : order;
  if (!name || name === "best") return isDown ? ranked.reverse() : ranked;
  const valueOf = valueReader(name);
  const sign = isDown ? -1 : 1;
  return ranked.map((trial) => ({ trial, value: valueOf(trial) })).sort((a, b) => compareValues(a.value, b.value, sign)).map((each) => each.trial);
}

function valueReader(name: string): (trial: TrialView) => unknown {
  if (name === "trial") return (trial) => trial.number;
  if (name === "status") return (trial) => trial.status;
  if (name === "last") return (trial) => trial.last;
  if (name === "reports") return (trial) => trial.reports;
  return (trial) => flattenParameters(trial.parameters)[name.replace(/^parameter:/, "")];
}

/** What has no value is last in both directions. */
function compareValues(a: unknown, b: unknown, sign: number): number {
  const [isA, isB] = [a === undefined || a === null, b === undefined || b === null];
  if (isA || isB) return Number(isA) - Number(isB);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * formatOption(a).localeCompare(formatOption(b), "en", { numeric: true });
}

/** A parameter's value as text. */
export function formatParameter(value: unknown): string {
  return value === undefined ? "" : formatOption(value);
}

/** "12 completed, 3 cut, 2 running" */
export function describeCounts(counts: { going: number; completed: number; cut: number; canceled: number; failed: number }): string {
  const parts = ([["going", "running or waiting"], ["completed", "completed"], ["cut", "cut"], ["canceled", "cancelled"], ["failed", "failed"]] as const)
    .filter(([name]) => counts[name])
    .map(([name, words]) => `${counts[name]} ${words}`);
  return parts.join(", ") || "no trial yet";
}

export function countTrials(trials: readonly TrialView[]): { going: number; completed: number; cut: number; canceled: number; failed: number } {
  const counts = { going: 0, completed: 0, cut: 0, canceled: 0, failed: 0 };
  for (const { status, cut_interval } of trials) {
    if (status === "Completed") counts.completed += 1;
    else if (status === "Failed") counts.failed += 1;
    else if (status === "Canceled") counts[cut_interval === null ? "canceled" : "cut"] += 1;
    else counts.going += 1;
  }
  return counts;
}

const WEAK = 0.2;

/** In which direction a parameter matters; nothing if that is not clear. */
export function describeCorrelation(correlation: unknown, metric: string): string {
  const value = toNumber(correlation);
  if (Number.isNaN(value) || Math.abs(value) < WEAK) return "";
  return value > 0 ? `larger values, larger ${metric}` : `larger values, smaller ${metric}`;
}
