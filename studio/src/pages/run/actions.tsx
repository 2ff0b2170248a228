/** What can be done with a run. Buttons that the server would refuse are not shown. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress, navigate } from "../../address";
import { call } from "../../api/client";
import type { RunRecord } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { copyText } from "../../components/code";
import { notify, notifyError } from "../../components/feedback";
import { useMay } from "../../session";
import { RerunDialog } from "./rerun";
import { hasEnded, isSweep, nameOf } from "./run_words";

interface Props {
  workspace: string;
  run: RunRecord;
  reload: () => void;
}

export function RunActions({ workspace, run, reload }: Props): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const mayDelete = useMay(workspace, "owner");
  const [isEditing, setEditing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const which = { workspace, run_id: run.id };
  const isOver = hasEnded(run.status);
  const canRepeat = mayChange && run.spec !== "" && !isSweep(run);

  async function retry(): Promise<void> {
    setBusy(true);
    try {
      const again = await call("POST /api/v1/workspaces/{workspace}/runs/{run_id}/rerun", which);
      notify(`Submitted again as ${nameOf(again)}.`);
      navigate(formatAddress(workspace, "runs", [again.id]));
    } catch (error) {
      notifyError(error);
    }
    setBusy(false);
  }
  async function archive(): Promise<void> {
    const body = { workspace, run_ids: [run.id] };
    const isArchived = run.archived_at !== null;
    const isDone = isArchived
      ? await attempt(() => call("POST /api/v1/workspaces/{workspace}/restored-runs", body), "The run is in lists again.")
      : await attempt(() => call("POST /api/v1/workspaces/{workspace}/archived-runs", body), "The run is left out of lists now.");
    if (isDone) reload();
  }
  return (
    <div class="run-actions" role="group" aria-label="Actions">
      {mayChange && !isOver && run.status !== "CancelRequested" && (
        <DangerButton
          label="Cancel"
          title="Cancel this run?"
          text={`All processes of ${nameOf(run)} are ended. What it logged and saved so far is kept.`}
          action="Cancel the run"
          done="The run is being cancelled."
          work={() => call("POST /api/v1/workspaces/{workspace}/runs/{run_id}/cancel", which)}
          onDone={reload}
        />
      )}
      {canRepeat && isOver && (
        <button type="button" disabled={isBusy} title="Submit the same code, packages and arguments again" onClick={() => void retry()}>
          Retry
        </button>
      )}
      {canRepeat && (
        <button type="button" onClick={() => setEditing(true)}>
          Rerun with changes
        </button>
      )}
      {mayChange && isOver && (
        <button type="button" onClick={() => void archive()}>
          {run.archived_at === null ? "Archive" : "Restore"}
        </button>
      )}
      {mayDelete && isOver && (
        <DangerButton
          label="Delete"
          title="Delete this run?"
          text={`${nameOf(run)} is deleted with its child runs, metrics, logs and files. This cannot be undone.`}
          action="Delete the run"
          done="The run is deleted."
          work={() => call("DELETE /api/v1/workspaces/{workspace}/runs/{run_id}", which)}
          onDone={() => navigate(formatAddress(workspace, "runs"))}
        />
      )}
      <button type="button" class="plain" title={run.id} onClick={() => void copy(run.id, "The id")}>
        Copy id
      </button>
      <button type="button" class="plain" onClick={() => void copy(location.href, "The link to this page")}>
        Copy link
      </button>
      {isEditing && <RerunDialog workspace={workspace} run={run} onClose={() => setEditing(false)} />}
    </div>
  );
}

async function copy(text: string, what: string): Promise<void> {
  const isCopied = await copyText(text);
  notify(isCopied ? `${what} is in the clipboard.` : `${what} could not be copied.`, { isError: !isCopied });
}
