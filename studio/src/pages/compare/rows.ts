/** What runs have in common and what not, as rows of a table: one row for each name, one cell for each run. */
import type { MetricSummary, RunRecord } from "../../api/types";
import { formatDate, formatDuration, formatNumber, toNumber } from "../../text/numbers";
import type { Goal } from "../../charts/summaries";

export interface ComparedRun {
  record: RunRecord;
  metrics: readonly MetricSummary[];
}

export interface Row {
  name: string;
  /** Texts as shown; undefined where a run does not have it. */
  cells: (string | undefined)[];
  /** The numbers behind them, if they are numbers. */
  numbers: (number | undefined)[];
  /** Which runs have the best value; empty if it is not known what is better. */
  best: number[];
}

export interface Group {
  title: string;
  rows: Row[];
}

export const METRIC_VALUES = ["last", "minimum", "maximum"] as const;
export type MetricValue = (typeof METRIC_VALUES)[number];

/** The name a run is shown by. */
export function nameRun({ display_name, id }: Pick<RunRecord, "display_name" | "id">): string {
  return display_name || id;
}

export function makeGroups(runs: readonly ComparedRun[], value: MetricValue, guessGoal: (name: string) => Goal | undefined): Group[] {
  const specs = runs.map((each) => readSpec(each.record.spec));
  const groups: Group[] = [
    { title: "Results", rows: metricRows(runs, value, guessGoal) },
    { title: "Arguments", rows: toRows(specs.map((each) => readArguments(each))) },
    { title: "Tags", rows: toRows(runs.map((each) => flatten(leaveOut(each.record.tags, REPEATED)))) },
    { title: "Run", rows: toRows(runs.map((each) => describeRun(each.record))) },
    { title: "Settings", rows: toRows(specs.map((each) => flatten(leaveOut(each, NOT_SETTINGS)))) },
    { title: "Environment", rows: toRows(specs.map((each) => flatten(readRecord(each["environment"])))) },
  ];
  return groups.filter((each) => each.rows.length);
}

/** Without the rows in which all runs are equal. */
export function keepDifferent(groups: readonly Group[]): Group[] {
  return groups.map(({ title, rows }) => ({ title, rows: rows.filter(isDifferent) })).filter((each) => each.rows.length);
}

export function isDifferent({ cells }: Row): boolean {
  return cells.some((each) => each !== cells[0]);
}

/** How many of the runs have each metric with numbers, by name. */
export function countMetrics(runs: readonly ComparedRun[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { metrics } of runs) {
    for (const { name, kind, maximum } of metrics) if (kind === "scalar" && maximum !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return new Map([...counts].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })));
}

function metricRows(runs: readonly ComparedRun[], value: MetricValue, guessGoal: (name: string) => Goal | undefined): Row[] {
  const names = [...new Set(runs.flatMap((each) => each.metrics.filter((metric) => metric.kind === "scalar").map((metric) => metric.name)))];
  return names.map((name) => {
    const values = runs.map((each) => each.metrics.find((metric) => metric.name === name)?.[value]);
    const numbers = values.map((each) => finite(toNumber(each)));
    const cells = values.map((each) => (each === undefined || each === null ? undefined : typeof each === "object" ? JSON.stringify(each) : formatNumber(each)));
    return { name, cells, numbers, best: findBest(numbers, guessGoal(name)) };
  });
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}

/** The runs with the best of at least two different numbers. */
export function findBest(numbers: readonly (number | undefined)[], goal: Goal | undefined): number[] {
  const known = numbers.filter((each) => each !== undefined);
  if (!goal || known.length < 2) return [];
  const best = goal === "max" ? Math.max(...known) : Math.min(...known);
  if (known.every((each) => each === best)) return [];
  return numbers.flatMap((each, index) => (each === best ? [index] : []));
}

function toRows(runs: readonly Readonly<Record<string, string>>[]): Row[] {
  const names = [...new Set(runs.flatMap((each) => Object.keys(each)))];
  return names.map((name) => {
    const cells = runs.map((each) => (Object.hasOwn(each, name) ? each[name] : undefined));
    const numbers = cells.map((each) => (each === undefined || each.trim() === "" ? undefined : finite(Number(each))));
    return { name, cells, numbers, best: [] };
  });
}

function describeRun(run: RunRecord): Record<string, string> {
  const [from, to] = [toNumber(run.started_at), toNumber(run.ended_at)];
  const facts: Record<string, string> = {
    experiment: run.experiment,
    state: run.status,
    "compute target": run.target,
    "submitted by": run.submitted_by,
    description: run.description,
    sweep: run.parent_id ?? "",
    nodes: run.nodes.length ? String(run.nodes.length) : "",
    duration: Number.isNaN(to - from) ? "" : formatDuration(to - from),
    code: run.snapshot_id.slice(0, 12),
    error: run.error ? String(readRecord(run.error)["message"] ?? readRecord(run.error)["headline"] ?? "failed") : "",
    archived: run.archived_at === null ? "" : formatDate(toNumber(run.archived_at)),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== ""));
}

const NOT_SETTINGS = new Set(["arguments", "command", "environment", "inherited_variables", "snapshot_id", "source_directory", "version", "target"]);

/** The parameters of a trial are among its arguments. */
const REPEATED = new Set(["hyperparameters"]);

function leaveOut(given: Readonly<Record<string, unknown>>, names: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => !names.has(name)));
}

/** The description of the job of a run; empty for a run without one. */
export function readSpec(text: string): Record<string, unknown> {
  try {
    return readRecord(JSON.parse(text));
  } catch {
    return {};
  }
}

function readRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** `{a: {b: 1}}` becomes `{"a.b": "1"}`; what is empty is left out. */
export function flatten(given: unknown, name = ""): Record<string, string> {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) {
    return Object.fromEntries(Object.entries(given).flatMap(([key, each]) => Object.entries(flatten(each, name ? `${name}.${key}` : key))));
  }
  if (given === null || given === undefined || given === "" || (Array.isArray(given) && !given.length)) return {};
  const isWords = Array.isArray(given) && given.every((each) => typeof each === "string");
  return { [name]: typeof given === "string" ? given : isWords ? given.join(", ") : JSON.stringify(given) };
}

/** Arguments by name, as filters name them: `--lr 0.1`, `--lr=0.1` and `lr=0.1` are the argument `lr`. */
export function readArguments(spec: Readonly<Record<string, unknown>>): Record<string, string> {
  const words = [spec["command"], spec["arguments"]].flatMap((each) => (Array.isArray(each) ? each : [])).map(String);
  const found = new Map<string, string[]>();
  const others: string[] = [];
  let values: string[] | undefined;
  for (const word of words) {
    const equals = word.indexOf("=");
    if (isName(word)) {
      values = equals < 0 ? [] : undefined;
      found.set(plainName(equals < 0 ? word : word.slice(0, equals)), values ?? [word.slice(equals + 1)]);
    } else if (/^[A-Za-z_][\w./-]*=/.test(word)) {
      found.set(plainName(word.slice(0, equals)), [word.slice(equals + 1)]);
      values = undefined;
    } else (values ?? others).push(word);
  }
  const named = [...found].map(([name, each]) => [name, each.length ? each.join(" ") : "true"]);
  return Object.fromEntries([...named, ...others.map((each, index) => [`word ${index + 1}`, each])]);
}

function isName(word: string): boolean {
  return word.startsWith("-") && word.replace(/-/g, "") !== "" && Number.isNaN(Number(word));
}

function plainName(name: string): string {
  return (name.replace(/^-+/, "") || name).replaceAll("-", "_");
}

/** "+0.02" against the baseline. */
export function formatDelta(number: number | undefined, baseline: number | undefined): string {
  if (number === undefined || baseline === undefined || number === baseline) return "";
  const delta = number - baseline;
  return `${delta > 0 ? "+" : "−"}${formatNumber(Math.abs(delta))}`;
}

export const MOST_RUNS = 50;

/** The runs in the address: each once, and not more than can be shown. */
export function parseRuns(text: string): string[] {
  return [...new Set(text.split(",").map((each) => each.trim()).filter(Boolean))].slice(0, MOST_RUNS);
}
