import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../../../api/client";
import { notifyError } from "../../../components/feedback";
import { type Growth, useGrowth } from "../growth";
import { MetricFeed, MOST_POINTS, type RankLine } from "./feed";

/** The metrics of a run, renewed whenever the run has logged more. `hasRanks` says whether several ranks may log. */
export function useFeed(workspace: string, runId: string, growth: Growth, hasRanks: boolean): MetricFeed {
  const feed = useMemo(
    () =>
      new MetricFeed({
        // What the script logged, and what Trainmaster measured.
        readSummaries: async () =>
          (
            await Promise.all(
              [false, true].map((system) =>
                call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/metric-summaries", { workspace, run_id: runId, system }),
              ),
            )
          ).flatMap((each) => each.metrics),
        readCurves: async (since) =>
          (
            await call("POST /api/v1/workspaces/{workspace}/curves", {
              workspace,
              run_ids: [runId],
              names: Object.keys(since),
              since: { [runId]: since },
              max_points: MOST_POINTS,
              by_rank: hasRanks,
            })
          ).curves,
        pause: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
        onError: notifyError,
      }),
    [workspace, runId, hasRanks],
  );
  useEffect(() => {
    feed.update();
    return () => feed.close();
  }, [feed]);
  useGrowth(growth, () => feed.update());
  const [, render] = useState(0);
  useEffect(() => feed.subscribe(() => render((count) => count + 1)), [feed]);
  return feed;
}

/** The lines of a metric while it is on the screen. */
export function useLines(feed: MetricFeed, name: string): readonly RankLine[] | undefined {
  useEffect(() => feed.want(name), [feed, name]);
  return feed.linesOf(name);
}
