import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { useParameter } from "../../address";
import { Lazy, MetricBrowser } from "../../charts/browser";
import { ChartControls, useChartOptions } from "../../charts/controls";
import { useCurves } from "../../charts/curves";
import { useFinerSeries } from "../../charts/finer";
import { LineChart } from "../../charts/lines";
import { guessGoal } from "../../charts/summaries";
import { Empty } from "../../components/feedback";
import { toNumber } from "../../text/numbers";
import { isLive } from "./data";
import { type ComparedRun, countMetrics, nameRun } from "./rows";

const CHART_HEIGHT = 300;

/** All metrics that at least two of the runs have, one chart for each. */
export function CompareCurves({ workspace, runs }: { workspace: string; runs: readonly ComparedRun[] }): JSX.Element {
  const [all, setAll] = useParameter("single");
  const { options, link } = useChartOptions();
  const counts = useMemo(() => countMetrics(runs), [runs]);
  const items = useMemo(() => {
    const least = all || runs.length === 1 ? 1 : 2;
    return [...counts].filter(([, count]) => count >= least).map(([name]) => ({ name }));
  }, [counts, all, runs.length]);
  const left = [...counts.values()].filter((each) => each < 2).length;
  if (!counts.size) return <Empty title="These runs have logged no numbers." />;
  return (
    <>
      <ChartControls options={options} link={link}>
        {left > 0 && runs.length > 1 ? (
          <label>
            <input type="checkbox" checked={!!all} onChange={(event) => setAll(event.currentTarget.checked ? "1" : "")} /> Also metrics of one run ({left})
          </label>
        ) : null}
      </ChartControls>
      <MetricBrowser
        items={items}
        render={(shown) => (
          <div class="compare-curves">
            {shown.map((each) => (
              <Lazy key={each.name} height={CHART_HEIGHT}>
                {() => <MetricChart workspace={workspace} name={each.name} runs={runs} options={options} link={link} />}
              </Lazy>
            ))}
          </div>
        )}
      />
    </>
  );
}

interface ChartProps extends ReturnType<typeof useChartOptions> {
  workspace: string;
  name: string;
  runs: readonly ComparedRun[];
}

/** One chart. It asks for its own values, so that only those of charts on the screen are read. */
function MetricChart({ workspace, name, runs, options, link }: ChartProps): JSX.Element {
  const { curves } = useCurves(workspace, runs.map((each) => each.record.id), [name], isLive(runs));
  const points = curves.get(name);
  const lines = runs.flatMap(({ record }, color) => {
    const found = points?.get(record.id);
    const start = toNumber(record.started_at ?? record.created_at);
    const origin = Number.isNaN(start) ? {} : { origin: start };
    return found ? [{ id: record.id, label: nameRun(record), points: found, color, ...origin }] : [];
  });
  const series = useFinerSeries({ workspace, name, link, options, lines, keys: [points, runs] });
  return <LineChart title={name} series={series} options={options} link={link} goal={guessGoal(name)} />;
}
