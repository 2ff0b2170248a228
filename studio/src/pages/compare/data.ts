/** The runs that are compared, as the server has them now. */
import { useRef } from "preact/hooks";
import { call } from "../../api/client";
import { useChanges } from "../../api/events";
import { usePaced } from "../../api/pace";
import { type Resource, useResource } from "../../api/resource";
import { isActive } from "../../text/status";
import type { ComparedRun } from "./rows";

export interface Comparison {
  runs: ComparedRun[];
  /** Ids that are not there. */
  missing: string[];
}

export function useComparison(workspace: string, ids: readonly string[]): Resource<Comparison> {
  const resource = useResource((signal) => readRuns(workspace, ids, signal), [workspace, ids.join()]);
  const wanted = useRef(new Set(ids));
  wanted.current = new Set(ids);
  const reload = usePaced(resource.reload);
  useChanges(workspace, (changes) => {
    const isOurs = (each: unknown) => wanted.current.has((each as { id: string }).id);
    if (!changes.whole || changes.runs.some(isOurs)) reload();
  });
  return resource;
}

async function readRuns(workspace: string, ids: readonly string[], signal: AbortSignal): Promise<Comparison> {
  if (!ids.length) return { runs: [], missing: [] };
  const answer = await call("POST /api/v1/workspaces/{workspace}/run-outlines", { workspace, run_ids: [...ids] }, { signal });
  const runs = answer.runs.map(({ run, metrics }) => ({ record: run, metrics }));
  const known = new Set(runs.map((each) => each.record.id));
  return { runs, missing: ids.filter((each) => !known.has(each)) };
}

export function isLive(runs: readonly ComparedRun[]): boolean {
  return runs.some((each) => isActive(each.record.status));
}
