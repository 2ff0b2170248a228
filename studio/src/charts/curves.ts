/** Metrics of several runs for charts, kept up to date while the runs go on. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../api/client";
import type { Curve } from "../api/types";
import { append, type Points } from "./points";

/** The points by metric, and below by run. */
export type Curves = ReadonlyMap<string, ReadonlyMap<string, Points>>;

const POINTS = 500;
const PAUSE = 1500;

export function toPointsOf(curve: Curve): Points {
  const { values, steps, times, index } = curve;
  return {
    index,
    times,
    steps: steps.length ? steps.map((each) => each ?? Number.NaN) : values.map(() => Number.NaN),
    values: values.map((each) => each ?? Number.NaN),
  };
}

/** What is known with newer points after it. Unchanged metrics stay the same objects, so that their charts stay as they are. */
export function mergeCurves(known: Curves, answer: readonly Curve[]): Curves {
  const found = new Map(known);
  const changed = new Set<string>();
  for (const curve of answer) {
    if (!curve.values.length) continue;
    const runs = new Map(found.get(curve.name));
    const before = runs.get(curve.run_id);
    runs.set(curve.run_id, before ? append(before, toPointsOf(curve)) : toPointsOf(curve));
    found.set(curve.name, runs);
    changed.add(curve.name);
  }
  return changed.size ? found : known;
}

/** How far each curve is known: what the next request passes as `since`. */
export function countCurves(counts: Readonly<Record<string, Record<string, number>>>, answer: readonly Curve[]): Record<string, Record<string, number>> {
  const next: Record<string, Record<string, number>> = { ...counts };
  for (const { run_id, name, count } of answer) next[run_id] = { ...next[run_id], [name]: count };
  return next;
}

/** The curves of these runs; without `names` those of all metrics. They are asked for again while `isLive`. */
export function useCurves(workspace: string, runIds: readonly string[], names: readonly string[] | undefined, isLive: boolean): { curves: Curves; isLoading: boolean } {
  const [state, setState] = useState<{ curves: Curves; isLoading: boolean }>({ curves: new Map(), isLoading: true });
  const wantsMore = useRef(isLive);
  wantsMore.current = isLive;
  const key = JSON.stringify([workspace, runIds, names]);
  useEffect(() => {
    const controller = new AbortController();
    let timer = 0;
    let curves: Curves = new Map();
    let counts: Record<string, Record<string, number>> = {};
    const ask = async () => {
      const wasLive = wantsMore.current;
      let hasFailed = false;
      try {
        if (document.visibilityState === "visible" && runIds.length) {
          const body = { workspace, run_ids: [...runIds], max_points: POINTS, since: counts, ...(names ? { names: [...names] } : {}) };
          const answer = await call("POST /api/v1/workspaces/{workspace}/curves", body, { signal: controller.signal });
          counts = countCurves(counts, answer.curves);
          curves = mergeCurves(curves, answer.curves);
        }
        setState({ curves, isLoading: false });
      } catch (error) {
        if (controller.signal.aborted) return;
        // What the server refuses, it refuses again.
        hasFailed = !(error instanceof ApiError) || error.status === 0 || error.status >= 500;
        setState((old) => ({ ...old, isLoading: false }));
      }
      // Once more after the end: the last values may have come since.
      if ((wasLive || hasFailed) && !controller.signal.aborted) timer = window.setTimeout(ask, PAUSE);
    };
    void ask();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key, isLive]);
  return state;
}
