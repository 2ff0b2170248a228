/** Several series on one horizontal axis, as uPlot takes them. Pure. */
import type { Points } from "./points";
import { smooth } from "./smoothing";

export const HORIZONTALS = ["step", "time", "relative"] as const;
export type Horizontal = (typeof HORIZONTALS)[number];

export interface ChartOptions {
  x: Horizontal;
  /** Weight of the moving average: 0 for none, below 1. */
  smoothing: number;
  logX: boolean;
  logY: boolean;
}

export const PLAIN: ChartOptions = { x: "step", smoothing: 0, logX: false, logY: false };

/** Values on one axis. In uPlot null is a gap, and undefined is a value that another series has and this one does not. */
export type Cell = number | null | undefined;

export interface Line {
  /** Ascending, without repetition. */
  xs: number[];
  ys: number[];
}

export interface Aligned {
  xs: number[];
  raw: Cell[][];
  smoothed: Cell[][];
}

/** Where the points lie on the axis. Without steps they are counted; `origin` is the time that is zero. */
export function chooseXs(points: Points, x: Horizontal, origin = points.times[0] ?? 0): readonly number[] {
  if (x === "time") return points.times;
  if (x === "relative") return points.times.map((time) => time - origin);
  let last = Number.NaN;
  const hasSteps = points.steps.some((step) => !Number.isNaN(step));
  if (!hasSteps) return points.index;
  return points.steps.map((step) => {
    if (!Number.isNaN(step)) last = step;
    return last;
  });
}

/**
 * A series in ascending order. A script that went back to a checkpoint logs steps again: the later value counts.
 * Points that have no place on the axis are left out.
 */
export function makeLine(xs: readonly number[], ys: readonly number[], isLogarithmic = false): Line {
  let isSorted = true;
  let last = Number.NEGATIVE_INFINITY;
  for (const x of xs) {
    if (!(x > last) || (isLogarithmic && x <= 0) || x === Number.POSITIVE_INFINITY) {
      isSorted = false;
      break;
    }
    last = x;
  }
  if (isSorted) return { xs: [...xs], ys: [...ys] };
  const found = new Map<number, number>();
  xs.forEach((x, n) => {
    if (Number.isFinite(x) && !(isLogarithmic && x <= 0)) found.set(x, ys[n] ?? Number.NaN);
  });
  const sorted = [...found].sort(([a], [b]) => a - b);
  return { xs: sorted.map(([x]) => x), ys: sorted.map(([, y]) => y) };
}

/** All series over the union of their places. `origins` are the beginnings of the runs, for relative time. */
export function align(
  all: readonly { points: Points; origin?: number }[],
  { x, smoothing, logX, logY }: ChartOptions,
): Aligned {
  const lines = all.map(({ points, origin }) => makeLine(chooseXs(points, x, origin), points.values, logX));
  const xs = unite(lines.map((line) => line.xs));
  const place = (line: Line, ys: readonly number[]) => spread(xs, line.xs, ys, logY);
  return {
    xs,
    raw: lines.map((line) => place(line, line.ys)),
    smoothed: smoothing > 0 ? lines.map((line) => place(line, smooth(line.ys, smoothing))) : [],
  };
}

/** Ascending numbers of all lists, each once. */
export function unite(lists: readonly (readonly number[])[]): number[] {
  const [first, ...others] = lists;
  if (!first) return [];
  if (others.every((list) => list.length === first.length && list.every((x, n) => x === first[n]))) return [...first];
  const all = Float64Array.from(lists.flat()).sort();
  const found: number[] = [];
  for (const x of all) if (x !== found[found.length - 1]) found.push(x);
  return found;
}

function spread(xs: readonly number[], own: readonly number[], ys: readonly number[], isLogarithmic: boolean): Cell[] {
  const cells: Cell[] = new Array<Cell>(xs.length).fill(undefined);
  let n = 0;
  for (let at = 0; at < xs.length && n < own.length; at++) {
    if (xs[at] !== own[n]) continue;
    const y = ys[n] ?? Number.NaN;
    cells[at] = Number.isFinite(y) && !(isLogarithmic && y <= 0) ? y : null;
    n += 1;
  }
  return cells;
}

/** The last value at or before a place of the axis: what the legend says under the pointer. */
export function valueAt(cells: readonly Cell[], at: number): number | undefined {
  for (let n = Math.min(at, cells.length - 1); n >= 0; n--) {
    const cell = cells[n];
    if (cell !== undefined) return cell ?? undefined;
  }
  return undefined;
}
