import type { JSX } from "preact";
import { useParameter } from "../../address";
import type { SweepView } from "../../api/types";
import { ChartControls, useChartOptions } from "../../charts/controls";
import { useCurves } from "../../charts/curves";
import { useFinerSeries } from "../../charts/finer";
import { LineChart } from "../../charts/lines";
import { isActive } from "../../text/status";
import { isHighBetter, rankTrials } from "./trials";

const CHOICES = [10, 20, 40];

/** The metric of the best trials over time, one line for each. */
export function SweepCurves({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const [count, setCount] = useParameter("curves", "10");
  const { options, link } = useChartOptions();
  const ranked = rankTrials(view).filter((each) => each.reports > 0).slice(0, Number(count) || 10);
  // By number: their rank changes while they run, and their colours must not.
  const shown = ranked.sort((a, b) => a.number - b.number);
  const ids = shown.map((each) => each.run_id);
  const { curves } = useCurves(workspace, ids, [view.metric], isActive(view.status));
  const runs = curves.get(view.metric);
  const lines = shown.flatMap((each) => {
    const points = runs?.get(each.run_id);
    return points ? [{ id: each.run_id, label: `Trial ${each.number}`, points }] : [];
  });
  const series = useFinerSeries({ workspace, name: view.metric, link, options, lines, keys: [runs, ids.join()] });
  return (
    <section class="sweep-curves" aria-label="Curves">
      <ChartControls options={options} link={link}>
        <label>
          <span class="muted">Trials</span>{" "}
          <select value={count} onChange={(event) => setCount(event.currentTarget.value)}>
            {CHOICES.map((each) => <option key={each} value={String(each)}>best {each}</option>)}
          </select>
        </label>
      </ChartControls>
      <LineChart title={view.metric} series={series} options={options} link={link} goal={isHighBetter(view) ? "max" : "min"} height={280} />
    </section>
  );
}
