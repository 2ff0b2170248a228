import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatAddress, navigate, useParameter } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { SweepView, TrialView } from "../../api/types";
import { applyBrushes, parseBrushes } from "../../charts/brush";
import { type Dimension, makeDimension } from "../../charts/dimension";
import { Scatter } from "../../charts/scatter";
import { Empty } from "../../components/feedback";
import { toNumber } from "../../text/numbers";
import { SweepCurves } from "./curves";
import { Importance } from "./importance";
import { isHighBetter, makeDimensions, rankTrials } from "./trials";

/** Scatter, curves and importance of parameters. */
export function SweepCharts({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const { trials } = view;
  if (!trials.length) return <Empty title="No trial has started yet." />;
  return (
    <>
      <SweepCurves workspace={workspace} view={view} />
      <div class="plot-columns">
        <SweepScatter workspace={workspace} view={view} />
        <Importance workspace={workspace} view={view} />
      </div>
    </>
  );
}

function SweepScatter({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const { trials } = view;
  const dimensions = useMemo(() => makeDimensions(view, trials), [trials]);
  const parameters = dimensions.slice(0, -1);
  const result = dimensions[dimensions.length - 1];
  const [xId, setX] = useParameter("parameter", parameters[0]?.id ?? "");
  const [yName, setY] = useParameter("metric", "");
  const [brushText] = useParameter("brush");
  const names = useMetricNames(workspace, view);
  const y = useVertical(workspace, view, yName, result);
  const labels = useMemo(() => trials.map((each) => `Trial ${each.number}`), [trials]);
  const kept = useMemo(() => applyBrushes(dimensions, parseBrushes(brushText), trials.length), [dimensions, brushText]);
  const x = dimensions.find((each) => each.id === xId) ?? dimensions[0];
  const color = useMemo(() => result && { dimension: result, isHighBetter: isHighBetter(view) }, [result]);
  if (!x || !y || !color) return <Empty title="There is nothing to draw." />;
  return (
    <section class="card" aria-labelledby="scatter-title">
      <div class="row">
        <h2 id="scatter-title">Scatter</h2>
        <span class="spacer" />
        <label class="row">
          <span class="muted">Parameter</span>
          <select value={x.id} onChange={(event) => setX(event.currentTarget.value)}>
            {parameters.map((each) => <option key={each.id} value={each.id}>{each.label}</option>)}
          </select>
        </label>
        <label class="row">
          <span class="muted">Metric</span>
          <select value={yName} onChange={(event) => setY(event.currentTarget.value)}>
            <option value="">{view.metric} (best)</option>
            <option value="last">{view.metric} (last)</option>
            <option value="duration">duration</option>
            {names.filter((each) => each !== view.metric).map((each) => <option key={each} value={`metric:${each}`}>{each} (last)</option>)}
          </select>
        </label>
      </div>
      <Scatter
        noun="trials"
        labels={labels}
        x={x}
        y={y}
        color={color}
        kept={kept}
        onOpen={(index) => {
          const trial = trials[index];
          if (trial) navigate(formatAddress(workspace, "runs", [trial.run_id]));
        }}
      />
    </section>
  );
}

/** The names of what trials log, as the best of them has them. */
function useMetricNames(workspace: string, view: SweepView): string[] {
  const runId = (rankTrials(view).find((each) => each.best !== null) ?? view.trials[0])?.run_id ?? "";
  const found = useResource(async (signal) => {
    if (!runId) return [];
    const { metrics } = await call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/metric-summaries", { workspace, run_id: runId }, { signal });
    return metrics.filter((each) => each.kind === "scalar" && each.maximum !== null).map((each) => each.name);
  }, [workspace, runId]);
  return found.value ?? [];
}

function useVertical(workspace: string, view: SweepView, choice: string, result: Dimension | undefined): Dimension | undefined {
  const { trials } = view;
  const name = choice.startsWith("metric:") ? choice.slice("metric:".length) : "";
  const others = useResource(async (signal) => (name ? readLast(workspace, trials, name, signal) : undefined), [workspace, name, trials.length, view.status]);
  return useMemo(() => {
    if (choice === "last") return makeDimension("last", `${view.metric} (last)`, trials.map((each) => each.last));
    if (choice === "duration") return makeDimension("duration", "duration in seconds", trials.map(secondsOf));
    if (name) return makeDimension(name, `${name} (last)`, trials.map((each) => others.value?.get(each.run_id)));
    return result;
  }, [choice, trials, result, others.value]);
}

function secondsOf(trial: TrialView): number | null {
  const seconds = toNumber(trial.ended_at) - toNumber(trial.started_at);
  return Number.isNaN(seconds) ? null : seconds;
}

const AT_ONCE = 200;

/** The last value of a metric of all trials. */
async function readLast(workspace: string, trials: readonly TrialView[], name: string, signal: AbortSignal): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  for (let start = 0; start < trials.length; start += AT_ONCE) {
    const run_ids = trials.slice(start, start + AT_ONCE).map((each) => each.run_id);
    const { sparklines } = await call("POST /api/v1/workspaces/{workspace}/sparklines", { workspace, run_ids, names: [name], points: 1 }, { signal });
    for (const each of sparklines) found.set(each.run_id, each.values[each.values.length - 1]);
  }
  return found;
}
