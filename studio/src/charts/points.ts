/** The values of a metric as columns of numbers, ready to be drawn. Pure. */
import type { Curve, MetricSeries } from "../api/types";
import { toNumber } from "../text/numbers";

export interface Points {
  /** Positions in the full series. */
  readonly index: readonly number[];
  /** NaN where none was logged. */
  readonly steps: readonly number[];
  /** Seconds since the epoch. */
  readonly times: readonly number[];
  /** NaN is a gap. */
  readonly values: readonly number[];
}

export const NO_POINTS: Points = { index: [], steps: [], times: [], values: [] };

/** Truth values count as 1 and 0; what is no number is a gap. */
export function toValue(value: unknown): number {
  return typeof value === "boolean" ? Number(value) : toNumber(value);
}

export function toPoints(series: MetricSeries): Points {
  return {
    index: series.index,
    steps: series.steps.map((step) => step ?? Number.NaN),
    times: series.times.map(toNumber),
    values: series.values.map(toValue),
  };
}

export function curveToPoints(curve: Pick<Curve, "index" | "steps" | "times" | "values">): Points {
  return {
    index: curve.index,
    steps: curve.index.map((_, n) => curve.steps[n] ?? Number.NaN),
    times: curve.times,
    values: curve.values.map((value) => value ?? Number.NaN),
  };
}

/**
 * Positions among the values of one rank, of which there are `count`, instead of among those of all `ranks`.
 * In a thinned series they are estimated.
 */
export function countInRank(points: Points, count: number, ranks: number): Points {
  if (ranks < 2) return points;
  const isWhole = points.index.length >= count;
  return { ...points, index: points.index.map((index, n) => (isWhole ? n : Math.floor(index / ranks))) };
}

/** Whether a chart can show it: at least one value is a number, or stands for one. */
export function isNumeric(series: Pick<MetricSeries, "kind" | "values">): boolean {
  if (series.kind !== "scalar") return false;
  return series.values.some((value) => value === "NaN" || !Number.isNaN(toValue(value)));
}

/** The points of each rank. Values from outside of the job have the rank null. Positions are counted for each rank. */
export function splitByRank(series: MetricSeries): Map<number | null, Points> {
  const found = new Map<number | null, { index: number[]; steps: number[]; times: number[]; values: number[] }>();
  const all = toPoints(series);
  series.ranks.forEach((rank, n) => {
    let mine = found.get(rank);
    if (!mine) {
      mine = { index: [], steps: [], times: [], values: [] };
      found.set(rank, mine);
    }
    mine.index.push(mine.index.length);
    mine.steps.push(all.steps[n] ?? Number.NaN);
    mine.times.push(all.times[n] ?? Number.NaN);
    mine.values.push(all.values[n] ?? Number.NaN);
  });
  return new Map([...found].sort(([a], [b]) => (a ?? -1) - (b ?? -1)));
}

/** Both, with the newer points after the older ones. Points that are there already are not taken twice. */
export function append(points: Points, more: Points): Points {
  const last = points.index.at(-1) ?? -1;
  const first = more.index.findIndex((each) => each > last);
  if (first < 0) return points;
  return {
    index: [...points.index, ...more.index.slice(first)],
    steps: [...points.steps, ...more.steps.slice(first)],
    times: [...points.times, ...more.times.slice(first)],
    values: [...points.values, ...more.values.slice(first)],
  };
}

/**
 * At most about `most` of the points: the first, the last, and the smallest and largest of each of equal parts of the
 * series. A part without numbers keeps its first point, so that a gap stays one.
 */
export function thin(points: Points, most: number): Points {
  const { index, values } = points;
  const count = index.length;
  if (count <= most || most < 4) return points;
  const buckets = Math.floor((most - 2) / 2);
  const begin = index[0] ?? 0;
  const span = (index[count - 1] ?? 0) - begin + 1;
  const chosen = new Set([0, count - 1]);
  let bucket = -1;
  let [first, low, high] = [-1, -1, -1];
  const close = () => {
    if (first < 0) return;
    chosen.add(low < 0 ? first : low);
    if (high >= 0) chosen.add(high);
  };
  for (let n = 0; n < count; n++) {
    const mine = Math.floor((((index[n] ?? 0) - begin) * buckets) / span);
    if (mine !== bucket) {
      close();
      bucket = mine;
      [first, low, high] = [n, -1, -1];
    }
    const value = values[n] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    if (low < 0 || value < (values[low] ?? 0)) low = n;
    if (high < 0 || value > (values[high] ?? 0)) high = n;
  }
  close();
  const kept = [...chosen].sort((a, b) => a - b);
  const pick = (column: readonly number[]) => kept.map((n) => column[n] ?? Number.NaN);
  return { index: pick(index), steps: pick(points.steps), times: pick(points.times), values: pick(values) };
}
