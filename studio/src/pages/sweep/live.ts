/** A sweep as it goes on: only what has changed is asked for. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { useChanges } from "../../api/events";
import type { SweepView } from "../../api/types";
import { isActive } from "../../text/status";
import { mergeChanges, type SweepState } from "./trials";

const PAUSE = 1000;

export interface LiveSweep {
  view: SweepView | undefined;
  /** Why the last request failed; what was read before stays. */
  error: ApiError | undefined;
  reload: () => void;
}

export function useSweep(workspace: string, runId: string): LiveSweep {
  const [state, setState] = useState<{ sweep?: SweepState; error?: ApiError | undefined }>({});
  const asked = useRef<{ isWanted: boolean } | undefined>(undefined);
  const latest = useRef<SweepState | undefined>(undefined);
  const isGone = useRef(false);

  const ask = () => {
    if (asked.current) {
      asked.current.isWanted = true;
      return;
    }
    const mine = { isWanted: false };
    asked.current = mine;
    call("GET /api/v1/workspaces/{workspace}/sweeps/{run_id}/changes", { workspace, run_id: runId, since: latest.current?.version ?? "" })
      .then(
        (answer) => {
          latest.current = mergeChanges(latest.current, answer as unknown as { view: SweepView; version: string; whole: boolean });
          if (!isGone.current) setState({ sweep: latest.current });
        },
        (error: unknown) => {
          const found = error instanceof ApiError ? error : new ApiError(0, "the studio made a mistake", String(error));
          if (!isGone.current) setState((old) => ({ ...old, error: found }));
        },
      )
      .finally(() => {
        asked.current = undefined;
        if (mine.isWanted && !isGone.current) ask();
      });
  };

  useEffect(() => {
    ask();
    return () => {
      isGone.current = true;
    };
  }, []);
  const isGoing = !state.sweep || isActive(state.sweep.view.status);
  useChanges(workspace, ({ whole, runs }) => {
    const isOurs = (each: unknown) => (each as { id: string }).id.startsWith(runId);
    if (!whole || (isGoing && runs.some(isOurs))) ask();
  });
  useEffect(() => {
    if (!isGoing) return undefined;
    // What trials log is read when somebody asks, and otherwise only now and then.
    const timer = setInterval(() => document.visibilityState === "visible" && ask(), PAUSE);
    return () => clearInterval(timer);
  }, [isGoing]);
  return { view: state.sweep?.view, error: state.error, reload: ask };
}
