/** News of a run that has not ended: its state, and that its files have grown. One stream serves all tabs. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { addressOf } from "../../api/client";
import { follow } from "../../api/events";

/** Tells its listeners that files of the run may have grown. */
export class Growth {
  private readonly listeners = new Set<() => void>();

  /** Calls `listener` at each growth until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  tell(): void {
    for (const each of [...this.listeners]) each();
  }
}

/** Calls `handle` whenever files of the run may have grown, and once more after its end. */
export function useGrowth(growth: Growth, handle: () => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => growth.subscribe(() => latest.current()), [growth]);
}

interface RunNews {
  status: string;
  ended: boolean;
}

/**
 * Follows a run to its end. `kinds` are the files whose growth is told: `journals` (metrics, tags) or `logs`.
 * `onState` is called at the beginning of each connection too, so that nothing stays missing after a gap.
 */
export function useRunEvents(
  { workspace, runId, kinds, isOver }: { workspace: string; runId: string; kinds: string; isOver: boolean },
  onState: (news: RunNews) => void,
): Growth {
  const growth = useMemo(() => new Growth(), []);
  const latest = useRef(onState);
  latest.current = onState;
  useEffect(() => {
    if (isOver) return undefined;
    const address = addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/events", {
      workspace,
      run_id: runId,
      files: kinds,
    });
    const stop = follow(address, {
      files: () => growth.tell(),
      state: (data) => {
        const news = data as RunNews;
        // The browser would connect again to a stream that is complete.
        if (news.ended) stop();
        latest.current(news);
        growth.tell();
      },
    });
    return stop;
  }, [workspace, runId, kinds, isOver]);
  return growth;
}
