/** The runs that have not ended, oldest first. */
import type { JSX } from "preact";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import type { QueueEntry, RunUse } from "../../api/types";
import { DangerButton } from "../../components/actions";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { StatusMark } from "../../components/status";
import { Age } from "../../components/time";
import { describeRunUse } from "./compute";

interface Props {
  workspace: string;
  queue: readonly QueueEntry[];
  /** What runs on the machine of the workspace use now. */
  use: readonly RunUse[] | undefined;
  hasTarget: boolean;
  mayCancel: boolean;
  onChange: () => void;
}

export function ActiveRuns({ workspace, queue, use, hasTarget, mayCancel, onChange }: Props): JSX.Element {
  const uses = new Map((use ?? []).map((each) => [each.run_id, each]));
  return (
    <Listing label="Active runs" columns={["State", "Run", "User", hasTarget && "Target", { number: "Nodes" }, "Uses now", "Submitted", "Waits for", mayCancel && { hidden: "Actions" }]}>
      {queue.map((run) => (
        <tr key={run.run_id}>
          <td><StatusMark status={run.status} /></td>
          <td class="name">
            <Link href={formatAddress(workspace, "runs", [run.run_id])}>{run.display_name || run.run_id}</Link>
            <div class="muted small">{run.experiment}{run.priority !== 0 && `, priority ${run.priority}`}</div>
          </td>
          <td class="name">{run.submitted_by}</td>
          {hasTarget && <td class="kept-whole">{run.target && <Link href={formatAddress(workspace, "queue", [run.target])}>{run.target}</Link>}</td>}
          <td class="number">{run.nodes.length ? run.nodes.join(", ") : <span class="muted">–</span>}</td>
          <td class="kept-whole">{describeRunUse(uses.get(run.run_id)) || <span class="muted">–</span>}</td>
          <td class="kept-whole"><Age at={run.created_at} /></td>
          <td class="reason sentence">{run.waiting_for || <span class="muted">–</span>}</td>
          {mayCancel && (
            <td class="actions">
              {run.status !== "CancelRequested" && (
                <DangerButton
                  label="Cancel"
                  name={`Cancel ${run.display_name || run.run_id}`}
                  title="Cancel this run?"
                  text={`${run.display_name || run.run_id} is ended. What it has logged and written is kept.`}
                  action="Cancel the run"
                  done="The run is being canceled."
                  work={() => call("POST /api/v1/workspaces/{workspace}/runs/{run_id}/cancel", { workspace, run_id: run.run_id })}
                  onDone={onChange}
                />
              )}
            </td>
          )}
        </tr>
      ))}
    </Listing>
  );
}
