/** What the processes of a run use of the machine now, asked every few seconds while the run executes and the page is open. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { RunRecord, RunUse } from "../../api/types";
import { usePolling } from "../../components/actions";

const SECONDS = 2;

/** Undefined while the run does not execute on the machine of the workspace. */
export function useRunUse(workspace: string, run: RunRecord): RunUse | undefined {
  const [use, setUse] = useState<RunUse | undefined>(undefined);
  usePolling(() => {
    call("GET /api/v1/workspaces/{workspace}/machine-use", { workspace }).then(
      ({ runs }) => setUse(runs.find((each) => each.run_id === run.id)),
      // It is asked again soon; the page says by itself if the server is gone.
      () => undefined,
    );
  }, run.status === "Running" ? SECONDS : 0);
  return use;
}
