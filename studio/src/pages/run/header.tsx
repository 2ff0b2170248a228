import type { JSX } from "preact";
import { formatAddress } from "../../address";
import type { RunRecord } from "../../api/types";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { nameOf } from "./run_words";

interface Props {
  workspace: string;
  run: RunRecord;
  isConnected: boolean;
  reload: () => void;
}

/** Which run it is, and how it stands. */
export function RunHeader({ workspace, run, isConnected }: Props): JSX.Element {
  return (
    <header class="run-header">
      <p class="small">
        <Link href={formatAddress(workspace, "runs", [], { filter: `experiment = "${run.experiment}"` })}>{run.experiment}</Link>
        <span class="muted"> / run {run.number}</span>
      </p>
      <div class="row">
        <h1>{nameOf(run)}</h1>
        <StatusMark status={run.status} />
        {!isConnected && <span class="muted small" role="status">The connection is lost. Trying again…</span>}
      </div>
    </header>
  );
}
