import type { JSX } from "preact";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { SweepView } from "../../api/types";
import { ErrorBox } from "../../components/feedback";
import { toNumber } from "../../text/numbers";
import { describeCorrelation, labelOf } from "./trials";

/** How much of the differences between trials each parameter explains. */
export function Importance({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const ended = view.trials.filter((each) => each.ended_at !== null).length;
  const found = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/sweeps/{run_id}/importance", { workspace, run_id: view.run_id }, { signal }), [workspace, view.run_id, ended]);
  const { parameters = [], trials = 0, notice = "" } = found.value ?? {};
  return (
    <section class="card" aria-labelledby="importance-title">
      <h2 id="importance-title">Importance of parameters</h2>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {notice && <p class="muted">{notice}</p>}
      {parameters.length > 0 && (
        <>
          <p class="muted small">
            The share of the differences in {view.metric} that each parameter explains by itself, from {trials} trials. A parameter that matters only
            together with others shows little.
          </p>
          <dl class="sweep-bars">
            {parameters.map((each) => (
              <div key={each.name}>
                <dt>{labelOf(each.name)}</dt>
                <dd class="sweep-track" aria-hidden="true"><div class="sweep-bar" style={{ width: `${100 * toNumber(each.importance)}%` }} /></dd>
                <dd class="number">{Math.round(100 * toNumber(each.importance))} %</dd>
                <dd class="muted small">{describeCorrelation(each.correlation, view.metric)}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}
