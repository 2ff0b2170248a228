import type { JSX } from "preact";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { SweepView } from "../../api/types";
import { formatDuration } from "../../text/numbers";
import { listSpace } from "./trials";

/** What was asked for: space, sampling, policy, limits, and the job of a trial. */
export function Specification({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const full = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/sweeps/{run_id}/specification", { workspace, run_id: view.run_id }, { signal }), [view.run_id]);
  const job = readRecord(full.value?.["job"]);
  const sampling = readRecord(full.value?.["sampling"]);
  const rows: [string, string][] = [
    ["Metric", `${view.metric}, ${view.goal === "MAXIMIZE" ? "larger is better" : "smaller is better"}`],
    ["Sampling", view.sampling + (sampling["seed"] === undefined ? "" : `, seed ${String(sampling["seed"])}`)],
    ["Policy", view.policy],
    ["Trials", `${view.total} in all, ${view.max_concurrent_runs} at a time`],
    ["Longest duration", formatDuration(view.max_duration_minutes * 60)],
    ["Script", text(job["script"])],
    ["Arguments", readList(job["arguments"]).map(text).join(" ")],
    ["Compute target", text(job["target"])],
  ];
  return (
    <div class="plot-columns">
      <section class="card" aria-labelledby="space-title">
        <h2 id="space-title">Parameter space</h2>
        <table class="sweep-specification">
          <tbody>
            {listSpace(view.space).map((each, index) => (
              <tr key={index}>
                <th scope="row" style={{ paddingLeft: `${0.6 + each.depth}rem` }}>{each.name}</th>
                <td>{each.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section class="card" aria-labelledby="limits-title">
        <h2 id="limits-title">Sampling, policy and limits</h2>
        <table class="sweep-specification">
          <tbody>
            {rows.filter(([, value]) => value).map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{value}</td></tr>)}
          </tbody>
        </table>
      </section>
    </div>
  );
}

function readRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function readList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}
