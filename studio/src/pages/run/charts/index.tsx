/** All metrics of a run, live; what the machine did stands apart. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { MetricSummary } from "../../../api/types";
import { Lazy, MetricBrowser } from "../../../charts/browser";
import { ChartControls, useChartOptions } from "../../../charts/controls";
import { SYSTEM } from "../../../charts/grouping";
import { ChartLink } from "../../../charts/link";
import { Empty, Loading } from "../../../components/feedback";
import { toNumber } from "../../../text/numbers";
import { countRanks, hasEnded } from "../run_words";
import type { RunTabProps } from "../tab";
import { isLine, isSingle, LineCard, NumberCard, OtherCard } from "./cards";
import { NoSystemUse } from "./system";
import { useFeed } from "./use_feed";

const CARD_HEIGHT = 272;

export function ChartsTab({ workspace, run, growth }: RunTabProps): JSX.Element {
  const hasRanks = countRanks(run.spec) > 1;
  const feed = useFeed(workspace, run.id, growth, hasRanks);
  const { options, link } = useChartOptions();
  const { summaries } = feed;
  // Machines are measured by the clock, not by steps: their charts cannot share the axis of steps.
  const isClock = options.x !== "step";
  const system = useMemo(
    () => (isClock ? { options, link } : { options: { ...options, x: "relative" as const, logX: false }, link: new ChartLink() }),
    [options, link, isClock],
  );
  const start = toNumber(run.started_at);
  const origin = Number.isNaN(start) ? undefined : start;

  if (!summaries) return <Loading />;
  const isMeasured = summaries.some((each) => each.name.startsWith(`${SYSTEM}/`));
  const hasLogged = summaries.some((each) => each.kind !== "system");
  const render = (items: readonly MetricSummary[], prefix: string) => {
    const drawn = prefix === SYSTEM ? system : { options, link };
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
                    <LineCard workspace={workspace} runId={run.id} metric={each} feed={feed} hasRanks={hasRanks} origin={origin} {...drawn} />
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
      {!hasLogged && (
        <Empty title={hasEnded(run.status) ? "This run logged no metrics." : "No metrics yet."}>
          <p class="muted">Metrics appear here as the script logs them: run.log("loss", 0.25)</p>
        </Empty>
      )}
      {summaries.length > 0 && (
        <MetricBrowser items={summaries} render={render}>
          <ChartControls options={options} link={link} />
        </MetricBrowser>
      )}
      {!isMeasured && <NoSystemUse isOver={hasEnded(run.status)} />}
    </>
  );
}
