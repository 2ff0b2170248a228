import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatAddress, navigate, useParameter, usePlace } from "../../address";
import { call } from "../../api/client";
import type { SweepView, TrialView } from "../../api/types";
import { applyBrushes, type Brushes, formatBrushes, parseBrushes } from "../../charts/brush";
import { Parallel } from "../../charts/parallel";
import { Confirmation } from "../../components/dialog";
import { Empty, ErrorBox, Loading, notify, notifyError } from "../../components/feedback";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { Tabs } from "../../components/tabs";
import { Duration } from "../../components/time";
import { useMay } from "../../session";
import { formatNumber } from "../../text/numbers";
import { isActive } from "../../text/status";
import { SweepCharts } from "./charts";
import { DecisionList } from "./decision_list";
import { useSweep } from "./live";
import { Progress } from "./progress";
import { Specification } from "./specification";
import { TrialTable } from "./table";
import { BEST, countTrials, describeCounts, flattenParameters, formatParameter, isHighBetter, labelOf, makeDimensions, rankTrials, sortTrials } from "./trials";

const TABS = [
  ["trials", "Trials"],
  ["charts", "Charts"],
  ["decisions", "Decisions"],
  ["specification", "Specification"],
] as const;

/** One sweep, live. */
export function SweepDetail({ workspace, runId }: { workspace: string; runId: string }): JSX.Element {
  const { view, error, reload } = useSweep(workspace, runId);
  const [tab] = useParameter("tab", "trials");
  const place = usePlace();
  if (!view) return error ? <ErrorBox error={error} onRetry={reload} /> : <Loading />;
  const kept = Object.fromEntries(place.query.entries());
  const tabs = TABS.map(([id, label]) => ({ id, label, href: formatAddress(workspace, "sweeps", [runId], { ...kept, tab: id === "trials" ? "" : id }) }));
  return (
    <section aria-labelledby="sweep-title">
      <Head workspace={workspace} view={view} onChange={reload} />
      {error && <ErrorBox error={error} onRetry={reload} />}
      {view.warnings.map((each) => <p key={each} class="muted">{each}</p>)}
      <Tabs tabs={tabs} current={tab} label="Parts of the sweep" />
      <div class="sweep-body">
        {tab === "charts" ? (
          <SweepCharts workspace={workspace} view={view} />
        ) : tab === "decisions" ? (
          <DecisionList workspace={workspace} view={view} />
        ) : tab === "specification" ? (
          <Specification workspace={workspace} view={view} />
        ) : (
          <Trials workspace={workspace} view={view} />
        )}
      </div>
    </section>
  );
}

function Head({ workspace, view, onChange }: { workspace: string; view: SweepView; onChange: () => void }): JSX.Element {
  const mayCancel = useMay(workspace, "contributor");
  const [isAsking, setAsking] = useState(false);
  const counts = countTrials(view.trials);
  const cancel = () => {
    call("POST /api/v1/workspaces/{workspace}/runs/{run_id}/cancel", { workspace, run_id: view.run_id }).then(() => {
      notify("The sweep is being cancelled.");
      onChange();
    }, notifyError);
  };
  return (
    <header>
      <p class="small"><Link href={formatAddress(workspace, "sweeps")}>Sweeps</Link></p>
      <div class="sweep-head">
        <h1 id="sweep-title">{view.run_id}</h1>
        <StatusMark status={view.status} />
        <span class="spacer" />
        <Link href={formatAddress(workspace, "runs", [view.run_id])}>Run page</Link>
        {mayCancel && isActive(view.status) && (
          <button type="button" onClick={() => setAsking(true)} disabled={view.status === "CancelRequested"}>Cancel sweep</button>
        )}
      </div>
      <dl class="sweep-facts">
        <div><dt>Experiment</dt><dd>{view.experiment}</dd></div>
        <div><dt>Metric</dt><dd>{view.metric} ({view.goal === "MAXIMIZE" ? "maximise" : "minimise"})</dd></div>
        <div><dt>Duration</dt><dd><Duration from={view.started_at} to={view.ended_at} /></dd></div>
        <div><dt>Trials</dt><dd>{view.trials.length} of {view.total}: {describeCounts(counts)}</dd></div>
      </dl>
      <Progress counts={counts} total={view.total} />
      {(view.ending || view.waiting_for) && <p class="muted">{[view.ending, view.waiting_for].filter(Boolean).join(" · ")}</p>}
      {isAsking && (
        <Confirmation
          title="Cancel this sweep?"
          text="Its active trials are cancelled, and no further ones start. What they have logged stays."
          action="Cancel sweep"
          onConfirm={cancel}
          onClose={() => setAsking(false)}
        />
      )}
    </header>
  );
}

function Trials({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const [brushText, setBrushText] = useParameter("brush");
  const [order, setOrder] = useParameter("sort", "best");
  const [colorId, setColor] = useParameter("color", BEST);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [pointed, setPointed] = useState<number | undefined>();

  const { trials } = view;
  const dimensions = useMemo(() => makeDimensions(view, trials), [trials]);
  const brushes = useMemo(() => parseBrushes(brushText), [brushText]);
  const kept = useMemo(() => applyBrushes(dimensions, brushes, trials.length), [dimensions, brushes]);
  const rows = useMemo(() => {
    const within = new Set(trials.filter((_, index) => kept[index]).map((each) => each.number));
    return sortTrials(view, order).filter((each) => within.has(each.number));
  }, [trials, kept, order]);
  const labels = useMemo(() => trials.map((each) => `Trial ${each.number}`), [trials]);
  const color = useMemo(() => {
    const result = dimensions[dimensions.length - 1];
    const dimension = dimensions.find((each) => each.id === colorId) ?? result;
    return dimension && { dimension, isHighBetter: dimension !== result || isHighBetter(view) };
  }, [dimensions, colorId]);
  const best = useMemo(() => rankTrials(view).find((each) => each.best !== null), [trials]);
  if (!trials.length) return <Empty title={isActive(view.status) ? "No trial has started yet." : "The sweep ended without a trial."} />;

  const indexOf = (number: number | undefined) => {
    const index = trials.findIndex((each) => each.number === number);
    return index < 0 ? undefined : index;
  };
  const chosen = selected.size ? [...selected] : rows.slice(0, 5).map((each) => each.run_id);
  return (
    <>
      {best && <BestTrial workspace={workspace} view={view} best={best} />}
      {color && (
        <section class="card" aria-labelledby="parallel-title">
          <div class="row">
            <h2 id="parallel-title">Parameters and results</h2>
            <span class="spacer" />
            <label class="row">
              <span class="muted">Colour</span>
              <select value={color.dimension.id} onChange={(event) => setColor(event.currentTarget.value)}>
                {dimensions.map((each) => <option key={each.id} value={each.id}>{each.label}</option>)}
              </select>
            </label>
          </div>
          <Parallel
            noun="trials"
            labels={labels}
            dimensions={dimensions}
            color={color}
            brushes={brushes}
            onBrush={(next: Brushes) => setBrushText(formatBrushes(next))}
            highlighted={indexOf(pointed)}
            onHighlight={(index) => setPointed(index === undefined ? undefined : trials[index]?.number)}
            onOpen={(index) => {
              const trial = trials[index];
              if (trial) navigate(formatAddress(workspace, "runs", [trial.run_id]));
            }}
          />
        </section>
      )}
      <section aria-labelledby="trials-title">
        <div class="row">
          <h2 id="trials-title">Trials</h2>
          <span class="muted">{rows.length === trials.length ? `${trials.length}` : `${rows.length} of ${trials.length}`}</span>
          <span class="spacer" />
          {selected.size > 0 && <button type="button" class="plain" onClick={() => setSelected(new Set())}>Clear selection</button>}
          {chosen.length > 1 && (
            <Link class="button" href={formatAddress(workspace, "compare", [], { runs: chosen.join(",") })}>
              {selected.size ? `Compare ${chosen.length} selected` : `Compare the first ${chosen.length}`}
            </Link>
          )}
        </div>
        <TrialTable
          {...{ workspace, view, order, selected }}
          trials={rows}
          bestNumber={best?.number}
          onOrder={setOrder}
          onSelect={setSelected}
          highlighted={pointed}
          onHighlight={setPointed}
        />
      </section>
    </>
  );
}

function BestTrial({ workspace, view, best }: { workspace: string; view: SweepView; best: TrialView }): JSX.Element {
  return (
    <section class="card sweep-best-trial" aria-label="Best trial">
      <span class="muted">Best {view.metric}</span>
      <span class="sweep-best-value">{formatNumber(best.best)}</span>
      <Link href={formatAddress(workspace, "runs", [best.run_id])}>Trial {best.number}</Link>
      <span class="sweep-parameters">
        {Object.entries(flattenParameters(best.parameters)).map(([name, value]) => (
          <span key={name}><span class="muted">{labelOf(name)}</span> {formatParameter(value)}</span>
        ))}
      </span>
    </section>
  );
}
