/** What a chart says in words: for people who do not see it, and for the line above it. Pure. */
import { formatNumber } from "../text/numbers";
import { chooseXs } from "./alignment";
import type { Points } from "./points";

export type Goal = "min" | "max";

export interface Summary {
  count: number;
  /** Positions in the points; -1 if no value is a number. */
  last: number;
  lowest: number;
  highest: number;
}

export function summarize({ values }: Points): Summary {
  let [last, lowest, highest] = [-1, -1, -1];
  values.forEach((value, n) => {
    if (!Number.isFinite(value)) return;
    last = n;
    if (lowest < 0 || value < (values[lowest] ?? 0)) lowest = n;
    if (highest < 0 || value > (values[highest] ?? 0)) highest = n;
  });
  return { count: values.length, last, lowest, highest };
}

const SMALLER = /(loss|error|err|mae|mse|rmse|perplexity|ppl|wer|cer|nll|deviance|latency|duration|seconds)$/;
const LARGER = /(acc|accuracy|auc|f1|precision|recall|score|r2|bleu|rouge|iou|map|reward|return|throughput|per_second)$/;

/** Whether small or large values are better, as far as the name of a metric tells. */
export function guessGoal(name: string): Goal | undefined {
  const words = name.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);
  for (const word of words.reverse()) {
    if (SMALLER.test(word)) return "min";
    if (LARGER.test(word)) return "max";
  }
  return undefined;
}

/** The position of the best point, if it is known what is better. */
export function findBest(points: Points, goal: Goal | undefined): number {
  if (!goal) return -1;
  const { lowest, highest } = summarize(points);
  return goal === "min" ? lowest : highest;
}

/** "train/loss. 10000 values, last 0.1 at step 9999, smallest 0.05 at step 9000, largest 2.3 at step 0." */
export function describeChart(title: string, all: readonly { label: string; points: Points; count?: number }[]): string {
  const parts = all.slice(0, 10).map(({ label, points, count }) => {
    const told = describePoints(points, count ?? points.values.length);
    return all.length > 1 ? `${label}: ${told}` : told;
  });
  const left = all.length - parts.length;
  return [`${title}.`, ...parts.map((each) => `${each}.`), ...(left > 0 ? [`And ${left} more series.`] : [])].join(" ");
}

function describePoints(points: Points, count: number): string {
  const { last, lowest, highest } = summarize(points);
  if (last < 0) return "no values yet";
  const at = (n: number) => `${formatNumber(points.values[n])} at ${formatPlace(points, n)}`;
  const many = count === 1 ? "1 value" : `${count} values`;
  return `${many}, last ${at(last)}, smallest ${at(lowest)}, largest ${at(highest)}`;
}

function formatPlace(points: Points, n: number): string {
  return `step ${formatNumber(chooseXs(points, "step")[n])}`;
}

/** The step of a point, or its position. */
export function placeOf(points: Points, n: number): string {
  return formatPlace(points, n);
}

export interface ValueTable {
  head: string[];
  rows: string[][];
  /** Rows that are left out. */
  left: number;
}

/** The values as a table with at most `most` rows, evenly chosen. */
export function tabulate(
  xs: readonly number[],
  columns: readonly { label: string; cells: readonly (number | null | undefined)[] }[],
  { first, formatX, most = 100 }: { first: string; formatX: (x: number) => string; most?: number },
): ValueTable {
  const every = Math.max(1, Math.ceil(xs.length / most));
  const chosen = xs.map((_, n) => n).filter((n) => n % every === 0 || n === xs.length - 1);
  return {
    head: [first, ...columns.map((column) => column.label)],
    rows: chosen.map((n) => [
      formatX(xs[n] ?? 0),
      ...columns.map(({ cells }) => {
        const cell = cells[n];
        return cell === undefined ? "" : cell === null ? "NaN" : formatNumber(cell);
      }),
    ]),
    left: xs.length - chosen.length,
  };
}
