/** Long series come thinned. When a chart is zoomed, the points of the part that it shows are asked for. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api/client";
import type { Curve } from "../api/types";
import { type ChartOptions, chooseXs } from "./alignment";
import type { ChartLink, Zoom } from "./link";
import { curveToPoints, type Points } from "./points";

const POINTS = 2000;
/** Whoever drags or turns a wheel changes the zoom several times. */
const PAUSE = 120;

/** A line as it is known, and where its points lie on the axis. */
export interface Coarse {
  readonly id: string;
  readonly runId: string;
  readonly rank: number | null;
  readonly points: Points;
  readonly xs: readonly number[];
}

/** Indexes of a full series: from the first up to the second, which is not included. */
export type Span = readonly [number, number];

/** The part of the full series that a zoom shows, with the points beside it; undefined if all of its points are known. */
export function findSpan({ index }: Points, xs: readonly number[], [from, to]: Zoom): Span | undefined {
  let [first, last, known] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  const isLeft = (n: number) => (xs[n] ?? Number.NaN) < from;
  const isRight = (n: number) => (xs[n] ?? Number.NaN) > to;
  for (let n = 0; n < index.length; n++) {
    const isOutside = isLeft(n) || isRight(n);
    // A neighbour is needed if the line to it crosses the part.
    const isNeighbour = (n + 1 < index.length && isLeft(n) !== isLeft(n + 1)) || (n > 0 && isRight(n) !== isRight(n - 1));
    if (isOutside && !isNeighbour) continue;
    first = Math.min(first, index[n] ?? first);
    last = Math.max(last, index[n] ?? last);
    known += 1;
  }
  return last - first + 1 > known && known > 0 ? [first, last + 1] : undefined;
}

/** The points with finer ones in their place. */
export function refine(points: Points, finer: Points | undefined): Points {
  const [first, last] = [finer?.index[0], finer?.index.at(-1)];
  if (!finer || first === undefined || last === undefined) return points;
  const after = points.index.findIndex((each) => each > last);
  const before = points.index.findIndex((each) => each >= first);
  const join = (name: keyof Points) => [
    ...points[name].slice(0, before < 0 ? undefined : before),
    ...finer[name],
    ...(after < 0 ? [] : points[name].slice(after)),
  ];
  return { index: join("index"), steps: join("steps"), times: join("times"), values: join("values") };
}

interface Wanted {
  workspace: string;
  name: string;
  link: ChartLink;
  byRank?: boolean;
  /** Whether the lines are there. */
  isReady: boolean;
  locate: () => readonly Coarse[];
}

/** The finer points of lines by their id, as far as the charts with this link are zoomed. */
export function useFiner(wanted: Wanted): ReadonlyMap<string, Points> {
  const [finer, setFiner] = useState<ReadonlyMap<string, Points>>(new Map());
  const latest = useRef(wanted);
  latest.current = wanted;
  const { workspace, name, link, isReady } = wanted;
  useEffect(() => {
    if (!isReady) return undefined;
    let controller = new AbortController();
    let timer = 0;
    const ask = (zoom: Zoom | undefined) => {
      controller.abort();
      clearTimeout(timer);
      if (!zoom) {
        setFiner((old) => (old.size ? new Map() : old));
        return;
      }
      controller = new AbortController();
      const { signal } = controller;
      timer = window.setTimeout(() => {
        // Without an answer, the thinned lines stay.
        readFiner(latest.current, zoom, signal).then((found) => found && !signal.aborted && setFiner(found), () => undefined);
      }, PAUSE);
    };
    ask(link.zoom);
    const stop = link.subscribe(ask);
    return () => {
      stop();
      controller.abort();
      clearTimeout(timer);
    };
  }, [workspace, name, link, isReady]);
  return finer;
}

interface WantedSeries<S extends RunSeries> {
  workspace: string;
  name: string;
  link: ChartLink;
  options: ChartOptions;
  /** One for each run, whose id is the id of the run. */
  lines: readonly S[];
  /** The lines are the same as long as these are. */
  keys: readonly unknown[];
}

interface RunSeries {
  readonly id: string;
  readonly points: Points;
  readonly origin?: number;
}

/** Lines of several runs, with finer points in the part to which the charts with this link are zoomed. */
export function useFinerSeries<S extends RunSeries>({ workspace, name, link, options, lines, keys }: WantedSeries<S>): readonly S[] {
  const finer = useFiner({
    ...{ workspace, name, link, isReady: lines.length > 0 },
    locate: () => lines.map(({ id, points, origin }) => ({ id, runId: id, rank: null, points, xs: chooseXs(points, options.x, origin) })),
  });
  return useMemo(() => lines.map((each) => ({ ...each, points: refine(each.points, finer.get(each.id)) })), [...keys, finer]);
}

async function readFiner({ workspace, name, byRank, locate }: Wanted, zoom: Zoom, signal: AbortSignal): Promise<Map<string, Points> | undefined> {
  const lines = locate();
  const since: Record<string, Record<string, number>> = {};
  const until: Record<string, Record<string, number>> = {};
  for (const { runId, points, xs } of lines) {
    const span = findSpan(points, xs, zoom);
    if (!span) continue;
    since[runId] = { [name]: Math.min(span[0], since[runId]?.[name] ?? span[0]) };
    until[runId] = { [name]: Math.max(span[1], until[runId]?.[name] ?? span[1]) };
  }
  const run_ids = Object.keys(since);
  if (!run_ids.length) return undefined;
  const body = { workspace, run_ids, names: [name], max_points: POINTS, since, until, by_rank: byRank ?? false };
  const { curves } = await call("POST /api/v1/workspaces/{workspace}/curves", body, { signal });
  return matchCurves(lines, curves);
}

function matchCurves(lines: readonly Coarse[], curves: readonly Curve[]): Map<string, Points> {
  const found = new Map<string, Points>();
  for (const { id, runId, rank } of lines) {
    const curve = curves.find((each) => each.run_id === runId && each.rank === rank);
    if (curve?.index.length) found.set(id, curveToPoints(curve));
  }
  return found;
}
