import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatAddress, navigate, setParameters, useParameter } from "../../address";
import { applyBrushes, formatBrushes, parseBrushes } from "../../charts/brush";
import type { Dimension } from "../../charts/dimension";
import { Parallel } from "../../charts/parallel";
import { Scatter } from "../../charts/scatter";
import { guessGoal } from "../../charts/summaries";
import { Empty } from "../../components/feedback";
import { chooseAxes, formatAxes, makeAxes } from "./axes";
import { type ComparedRun, type Group, nameRun } from "./rows";

interface Props {
  workspace: string;
  runs: readonly ComparedRun[];
  groups: readonly Group[];
}

/** Parallel coordinates and a scatter chart over arguments that differ and results. */
export function CompareCharts({ workspace, runs, groups }: Props): JSX.Element {
  const axes = useMemo(() => makeAxes(groups), [groups]);
  const all = useMemo(() => [...axes.inputs, ...axes.results], [axes]);
  const [axesText, setAxes] = useParameter("axes");
  const [brushText, setBrush] = useParameter("brush");
  const [colorId] = useParameter("color");
  const [xId] = useParameter("across");
  const [yId] = useParameter("up");

  const chosen = useMemo(() => chooseAxes(axes, axesText), [axes, axesText]);
  const brushes = useMemo(() => parseBrushes(brushText), [brushText]);
  const kept = useMemo(() => applyBrushes(chosen, brushes, runs.length), [chosen, brushes, runs.length]);
  const labels = useMemo(() => runs.map((each) => nameRun(each.record)), [runs]);
  const find = (id: string, fallback: Dimension | undefined) => all.find((each) => each.id === id) ?? fallback;
  const colored = find(colorId, axes.results[0] ?? all[0]);
  const color = useMemo(() => (colored ? { dimension: colored, isHighBetter: guessGoal(colored.label) !== "min" } : undefined), [colored]);
  const [x, y] = [find(xId, axes.inputs[0] ?? axes.results[1] ?? all[0]), find(yId, axes.results[0] ?? all[0])];
  if (!color || !x || !y || !all.length) return <Empty title="These runs have no numbers that could be drawn." />;
  const open = (index: number) => {
    const run = runs[index];
    if (run) navigate(formatAddress(workspace, "runs", [run.record.id]));
  };
  const toggle = (dimension: Dimension) => {
    const next = chosen.includes(dimension) ? chosen.filter((each) => each !== dimension) : all.filter((each) => chosen.includes(each) || each === dimension);
    setAxes(formatAxes(next));
  };
  return (
    <>
      <section class="card" aria-labelledby="compare-parallel">
        <div class="row">
          <h2 id="compare-parallel">Parallel coordinates</h2>
          <span class="spacer" />
          <Choice label="Colour" all={all} value={color.dimension.id} onChange={(color) => setParameters({ color })} />
        </div>
        <details class="plot-filters">
          <summary>Axes ({chosen.length} of {all.length})</summary>
          <div class="plot-fields">
            {all.map((each) => (
              <label key={each.id} class="check">
                <input type="checkbox" checked={chosen.includes(each)} disabled={chosen.length === 1 && chosen.includes(each)} onChange={() => toggle(each)} />
                {each.label}
              </label>
            ))}
          </div>
        </details>
        <Parallel noun="runs" labels={labels} dimensions={chosen} color={color} brushes={brushes} onBrush={(next) => setBrush(formatBrushes(next))} onOpen={open} />
      </section>
      <section class="card" aria-labelledby="compare-scatter">
        <div class="row">
          <h2 id="compare-scatter">Scatter</h2>
          <span class="spacer" />
          <Choice label="Across" all={all} value={x.id} onChange={(across) => setParameters({ across })} />
          <Choice label="Up" all={all} value={y.id} onChange={(up) => setParameters({ up })} />
        </div>
        <Scatter noun="runs" labels={labels} x={x} y={y} color={color} kept={kept} onOpen={open} />
      </section>
    </>
  );
}

function Choice({ label, all, value, onChange }: { label: string; all: readonly Dimension[]; value: string; onChange: (id: string) => void }): JSX.Element {
  return (
    <label class="row">
      <span class="muted">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {all.map((each) => <option key={each.id} value={each.id}>{each.label}</option>)}
      </select>
    </label>
  );
}
