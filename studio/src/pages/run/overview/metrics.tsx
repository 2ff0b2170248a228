import type { JSX } from "preact";
import { formatAddress } from "../../../address";
import type { MetricSummary, RunRecord } from "../../../api/types";
import { Link } from "../../../components/link";
import { formatNumber } from "../../../text/numbers";

const MOST = 12;

/** The last values of the first metrics; all of them have charts. */
export function MetricTable({ workspace, run, metrics }: { workspace: string; run: RunRecord; metrics: readonly MetricSummary[] }): JSX.Element | null {
  const numbers = metrics.filter((each) => each.kind === "scalar" && each.minimum !== null);
  if (!numbers.length) return null;
  return (
    <section class="card stack-small" aria-label="Metrics">
      <div class="row">
        <h2>Metrics</h2>
        <span class="spacer" />
        <Link href={formatAddress(workspace, "runs", [run.id, "charts"])}>
          {metrics.length > MOST ? `All ${metrics.length} as charts` : "Charts"}
        </Link>
      </div>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col" class="number">Last</th>
              <th scope="col" class="number">Smallest</th>
              <th scope="col" class="number">Largest</th>
              <th scope="col" class="number">Values</th>
            </tr>
          </thead>
          <tbody>
            {numbers.slice(0, MOST).map((each) => (
              <tr key={each.name}>
                <td class="name"><Link href={formatAddress(workspace, "runs", [run.id, "charts"], { metrics: each.name })}>{each.name}</Link></td>
                <td class="number"><strong>{formatNumber(each.last)}</strong></td>
                <td class="number">{each.minimum === null ? "" : formatNumber(each.minimum)}</td>
                <td class="number">{each.maximum === null ? "" : formatNumber(each.maximum)}</td>
                <td class="number">{each.count}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
