/** The runs that are compared, as the server has them now. */
import { useRef } from "preact/hooks";
import { ApiError, call } from "../../api/client";
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
  const found = await Promise.all(ids.map((each) => readRun(workspace, each, signal)));
  return {
    runs: found.filter((each) => each !== undefined),
    missing: ids.filter((_, index) => found[index] === undefined),
  };
}

async function readRun(workspace: string, run_id: string, signal: AbortSignal): Promise<ComparedRun | undefined> {
  try {
    const [record, { metrics }] = await Promise.all([
      call("GET /api/v1/workspaces/{workspace}/runs/{run_id}", { workspace, run_id }, { signal }),
      call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/metric-summaries", { workspace, run_id }, { signal }),
    ]);
    return { record, metrics };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return undefined;
    throw error;
  }
}

export function isLive(runs: readonly ComparedRun[]): boolean {
  return runs.some((each) => isActive(each.record.status));
}
