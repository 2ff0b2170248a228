/** What the processes of a run use of the machine, asked every few seconds while the run executes and the page is open. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { GpuUse, RunRecord, RunUse } from "../../api/types";
import { append, NO_POINTS, type Points, thin } from "../../charts/points";
import { usePolling } from "../../components/actions";
import { toNumber } from "../../text/numbers";

const SECONDS = 2;
const MOST_RUNS = 5;
const MOST_POINTS = 1000;
const GIGABYTE = 1e9;

export interface UseHistory {
  now: RunUse;
  /** By the title of the chart. */
  charts: ReadonlyMap<string, Points>;
}

// What was measured is not kept with the run. It stays while the studio is open, so that another tab does not lose it.
const histories = new Map<string, UseHistory>();

/** Undefined while the run does not execute on the machine of the workspace. */
export function useRunUse(workspace: string, run: RunRecord): UseHistory | undefined {
  const [, render] = useState(0);
  const isExecuting = run.status === "Running";
  const key = `${workspace}/${run.id}`;
  usePolling(() => {
    call("GET /api/v1/workspaces/{workspace}/machine-use", { workspace }).then(
      ({ machine, runs }) => {
        const mine = runs.find((each) => each.run_id === run.id);
        if (!mine) return;
        const before = histories.get(key);
        histories.delete(key);
        histories.set(key, { now: mine, charts: addMeasurement(before?.charts, mine, machine.gpus, Date.now() / 1000) });
        for (const old of [...histories.keys()].slice(0, -MOST_RUNS)) histories.delete(old);
        render((count) => count + 1);
      },
      // It is asked again soon; the page says by itself if the server is gone.
      () => undefined,
    );
  }, isExecuting ? SECONDS : 0);
  return histories.get(key);
}

/** The charts with one more point each. */
export function addMeasurement(
  before: ReadonlyMap<string, Points> | undefined,
  run: RunUse,
  gpus: readonly GpuUse[],
  time: number,
): ReadonlyMap<string, Points> {
  const found = new Map(before);
  const add = (title: string, value: number) => {
    const points = found.get(title) ?? NO_POINTS;
    const index = (points.index.at(-1) ?? -1) + 1;
    const all = append(points, { index: [index], steps: [Number.NaN], times: [time], values: [value] });
    found.set(title, all.index.length > 2 * MOST_POINTS ? thin(all, MOST_POINTS) : all);
  };
  add("CPU (%, 100 is one CPU)", toNumber(run.cpu_percent));
  add("Memory (GB)", run.memory / GIGABYTE);
  add("Processes", run.processes);
  for (const gpu of gpus) {
    if (gpu.percent !== null) add(`GPU ${gpu.index} (%)`, toNumber(gpu.percent));
    if (gpu.memory_used !== null) add(`GPU ${gpu.index} memory (GB)`, gpu.memory_used / GIGABYTE);
  }
  return found;
}
