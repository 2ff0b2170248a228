import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import { useChanges } from "../../api/events";
import { usePaced } from "../../api/pace";
import { useResource } from "../../api/resource";
import type { SweepSummary } from "../../api/types";
import { Empty, ErrorBox, Loading, notifyError } from "../../components/feedback";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { Age, Duration } from "../../components/time";
import { formatNumber } from "../../text/numbers";
import { Progress } from "./progress";
import { describeCounts } from "./trials";

const PAGE = 50;

/** All sweeps of the workspace, newest first. */
export function SweepList({ workspace }: { workspace: string }): JSX.Element {
  const newest = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/sweeps", { workspace, limit: PAGE }, { signal }), [workspace]);
  const [older, setOlder] = useState<{ sweeps: SweepSummary[]; next: number | null }>();
  useChanges(workspace, usePaced(newest.reload));

  const next = older ? older.next : newest.value?.next;
  const showMore = () => {
    if (!next) return;
    call("GET /api/v1/workspaces/{workspace}/sweeps", { workspace, limit: PAGE, before: next }).then(
      (answer) => setOlder((known) => ({ sweeps: [...(known?.sweeps ?? []), ...answer.sweeps], next: answer.next })),
      notifyError,
    );
  };
  const first = newest.value?.sweeps ?? [];
  const known = new Set(first.map((each) => each.view.run_id));
  const sweeps = [...first, ...(older?.sweeps ?? []).filter((each) => !known.has(each.view.run_id))];
  return (
    <section aria-labelledby="sweeps-title">
      <h1 id="sweeps-title">Sweeps</h1>
      {newest.error && <ErrorBox error={newest.error} onRetry={newest.reload} />}
      {!newest.value && !newest.error && <Loading />}
      {newest.value && !sweeps.length && (
        <Empty title="There is no sweep yet.">
          <p class="muted">Submit a HyperDriveConfig, or run: trainmaster sweep submit FILE</p>
        </Empty>
      )}
      {sweeps.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label="List of sweeps">
          <table class="sweep-trials">
            <thead>
              <tr>
                <th scope="col">Sweep</th>
                <th scope="col">Experiment</th>
                <th scope="col">State</th>
                <th scope="col" class="number">Best value</th>
                <th scope="col">Metric</th>
                <th scope="col">Trials</th>
                <th scope="col">Started</th>
                <th scope="col">Duration</th>
              </tr>
            </thead>
            <tbody>{sweeps.map((each) => <SweepRow key={each.view.run_id} sweep={each} workspace={workspace} />)}</tbody>
          </table>
        </div>
      )}
      {next && <p><button type="button" onClick={showMore}>Show older sweeps</button></p>}
    </section>
  );
}

function SweepRow({ sweep: { view, counts, best }, workspace }: { sweep: SweepSummary; workspace: string }): JSX.Element {
  return (
    <tr>
      <td class="wide"><Link href={formatAddress(workspace, "sweeps", [view.run_id])}>{view.run_id}</Link></td>
      <td class="wide">{view.experiment}</td>
      <td><StatusMark status={view.status} /></td>
      <td class="number">
        {best && <Link href={formatAddress(workspace, "runs", [best.run_id])}>{formatNumber(best.best)}</Link>}
      </td>
      <td class="wide">{view.goal === "MAXIMIZE" ? "↑" : "↓"} {view.metric}</td>
      <td>
        <Progress counts={counts} total={view.total} />
        <span class="small muted">{counts.started} of {view.total}: {describeCounts(counts)}</span>
      </td>
      <td>{view.started_at === null ? "" : <Age at={view.started_at} />}</td>
      <td><Duration from={view.started_at} to={view.ended_at} /></td>
    </tr>
  );
}
