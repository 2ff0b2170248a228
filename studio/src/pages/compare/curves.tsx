import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { useParameter } from "../../address";
import { Lazy, MetricBrowser } from "../../charts/browser";
import { ChartControls, useChartOptions } from "../../charts/controls";
import { useCurves } from "../../charts/curves";
import { LineChart } from "../../charts/lines";
import type { Points } from "../../charts/points";
import { guessGoal } from "../../charts/summaries";
import { Empty, Loading } from "../../components/feedback";
import { toNumber } from "../../text/numbers";
import { isLive } from "./data";
import { type ComparedRun, nameRun } from "./rows";

const CHART_HEIGHT = 300;

/** All metrics that at least two of the runs have, one chart for each. */
export function CompareCurves({ workspace, runs }: { workspace: string; runs: readonly ComparedRun[] }): JSX.Element {
  const [all, setAll] = useParameter("single");
  const { options, link } = useChartOptions();
  const { curves, isLoading } = useCurves(workspace, runs.map((each) => each.record.id), undefined, isLive(runs));
  const least = all || runs.length === 1 ? 1 : 2;
  const items = useMemo(
    () => [...curves].filter(([, each]) => each.size >= least).map(([name, points]) => ({ name, points })).sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true })),
    [curves, least],
  );
  const left = [...curves.values()].filter((each) => each.size < 2).length;
  if (isLoading && !curves.size) return <Loading />;
  if (!curves.size) return <Empty title="These runs have logged no numbers." />;
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
                {() => <MetricChart name={each.name} points={each.points} runs={runs} options={options} link={link} />}
              </Lazy>
            ))}
          </div>
        )}
      />
    </>
  );
}

interface ChartProps extends ReturnType<typeof useChartOptions> {
  name: string;
  points: ReadonlyMap<string, Points>;
  runs: readonly ComparedRun[];
}

function MetricChart({ name, points, runs, options, link }: ChartProps): JSX.Element {
  const series = useMemo(
    () =>
      runs.flatMap(({ record }, color) => {
        const found = points.get(record.id);
        const origin = toNumber(record.started_at ?? record.created_at);
        return found ? [{ id: record.id, label: nameRun(record), points: found, color, ...(Number.isNaN(origin) ? {} : { origin }) }] : [];
      }),
    [points, runs],
  );
  return <LineChart title={name} series={series} options={options} link={link} goal={guessGoal(name)} />;
}
