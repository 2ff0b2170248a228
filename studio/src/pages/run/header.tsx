import type { JSX } from "preact";
import { formatAddress } from "../../address";
import type { RunRecord } from "../../api/types";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { Duration } from "../../components/time";
import { RunActions } from "./actions";
import { isSweep, nameOf } from "./run_words";

interface Props {
  workspace: string;
  run: RunRecord;
  reload: () => void;
}

/** Which run it is, how it stands, and what can be done with it. */
export function RunHeader({ workspace, run, reload }: Props): JSX.Element {
  return (
    <header class="run-header">
      <p class="path">
        <Link href={formatAddress(workspace, "runs")}>Runs</Link>
        <span class="muted" aria-hidden="true">/</span>
        <Link href={formatAddress(workspace, "runs", [], { filter: `experiment = ${JSON.stringify(run.experiment)}` })}>{run.experiment}</Link>
        <span class="muted" aria-hidden="true">/</span>
        <span class="muted">run {run.number}</span>
      </p>
      <div class="run-title">
        <div class="row">
          <h1>{nameOf(run)}</h1>
          <StatusMark status={run.status} />
          {run.archived_at !== null && <span class="muted small">Archived</span>}
          {run.started_at !== null && <span class="muted small"><Duration from={run.started_at} to={run.ended_at} /></span>}
          {isSweep(run) && <Link href={formatAddress(workspace, "sweeps", [run.id])}>Open the sweep</Link>}
        </div>
        <RunActions workspace={workspace} run={run} reload={reload} />
      </div>
    </header>
  );
}
