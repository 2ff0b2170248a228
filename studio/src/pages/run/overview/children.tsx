import type { JSX } from "preact";
import { formatAddress } from "../../../address";
import type { RunRecord, Runs } from "../../../api/types";
import { Link } from "../../../components/link";
import { StatusMark } from "../../../components/status";
import { Age, Duration } from "../../../components/time";
import { isSweep, nameOf } from "../run_words";

/** The newest child runs. */
export function Children({ workspace, run, page, total }: { workspace: string; run: RunRecord; page: Runs; total: number }): JSX.Element | null {
  if (!page.runs.length) return null;
  return (
    <section class="card" aria-label="Child runs">
      <div class="row">
        <h2>Child runs</h2>
        <span class="muted">{total}</span>
        <span class="spacer" />
        {isSweep(run) ? (
          <Link href={formatAddress(workspace, "sweeps", [run.id])}>Open the sweep</Link>
        ) : (
          <Link href={formatAddress(workspace, "runs", [], { filter: `parent = "${run.id}"` })}>Show as a table</Link>
        )}
      </div>
      <div class="scroll">
        <table>
          <thead>
            <tr><th scope="col">Run</th><th scope="col">State</th><th scope="col">Created</th><th scope="col" class="number">Duration</th></tr>
          </thead>
          <tbody>
            {page.runs.map((each) => (
              <tr key={each.id}>
                <td class="name"><Link href={formatAddress(workspace, "runs", [each.id])}>{nameOf(each)}</Link></td>
                <td><StatusMark status={each.status} /></td>
                <td class="kept-whole"><Age at={each.created_at} /></td>
                <td class="number"><Duration from={each.started_at} to={each.ended_at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {total > page.runs.length && <p class="muted small">The newest {page.runs.length} are shown.</p>}
    </section>
  );
}
