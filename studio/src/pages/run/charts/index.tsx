/** All metrics of a run, live; what the machine did stands apart. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { MetricSummary } from "../../../api/types";
import { Lazy, MetricBrowser } from "../../../charts/browser";
import { ChartControls, useChartOptions } from "../../../charts/controls";
import { isSystem } from "../../../charts/grouping";
import { Empty, Loading } from "../../../components/feedback";
import { toNumber } from "../../../text/numbers";
import { countRanks, hasEnded } from "../run_words";
import type { RunTabProps } from "../tab";
import { isLine, isSingle, LineCard, NumberCard, OtherCard } from "./cards";
import { useFeed } from "./use_feed";

const CARD_HEIGHT = 272;

export function ChartsTab({ workspace, run, growth }: RunTabProps): JSX.Element {
  const feed = useFeed(workspace, run.id, growth, countRanks(run.spec) > 1);
  const { options, link } = useChartOptions();
  const { summaries } = feed;
  const [own, system] = useMemo(() => splitSystem(summaries ?? []), [summaries]);
  const start = toNumber(run.started_at);
  const origin = Number.isNaN(start) ? undefined : start;

  if (!summaries) return <Loading />;
  if (!summaries.length) {
    return (
      <Empty title={hasEnded(run.status) ? "This run logged no metrics." : "No metrics yet."}>
        <p class="muted">Metrics appear here as the script logs them: run.log("loss", 0.25)</p>
      </Empty>
    );
  }
  const render = (items: readonly MetricSummary[]) => {
    const single = items.filter(isSingle);
    const others = items.filter((each) => !isSingle(each));
    return (
      <>
        {single.length > 0 && (
          <dl class="number-cards">{single.map((each) => <NumberCard key={each.name} metric={each} />)}</dl>
        )}
        {others.length > 0 && (
          <div class="chart-grid">
            {others.map((each) => (
              <Lazy key={each.name} height={CARD_HEIGHT}>
                {() =>
                  isLine(each) ? (
                    <LineCard metric={each} feed={feed} options={options} link={link} origin={origin} />
                  ) : (
                    <OtherCard workspace={workspace} runId={run.id} metric={each} />
                  )
                }
              </Lazy>
            ))}
          </div>
        )}
      </>
    );
  };
  return (
    <>
      <MetricBrowser items={own} render={render}>
        <ChartControls options={options} link={link} />
      </MetricBrowser>
      {system.length > 0 && (
        <section class="system-use" aria-label="System use">
          <h2>System use</h2>
          {render(system)}
        </section>
      )}
    </>
  );
}

function splitSystem(summaries: readonly MetricSummary[]): [MetricSummary[], MetricSummary[]] {
  return [summaries.filter((each) => !isSystem(each)), summaries.filter(isSystem)];
}
