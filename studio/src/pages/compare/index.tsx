import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatAddress, setParameters, useParameter } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import { guessGoal } from "../../charts/summaries";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Tabs } from "../../components/tabs";
import type { PageProps } from "../page";
import { CompareCharts } from "./charts";
import { CodeDifferences } from "./code";
import { CompareCurves } from "./curves";
import { useComparison } from "./data";
import { makeGroups, METRIC_VALUES, type MetricValue, MOST_RUNS, nameRun, parseRuns } from "./rows";
import { DifferenceTable } from "./table";

const TABS = [
  ["table", "Differences"],
  ["curves", "Curves"],
  ["code", "Code and packages"],
  ["charts", "Charts"],
] as const;

/** Several runs side by side. Which ones is in the address: `?runs=a,b,c`. */
export function ComparePage({ place, workspace }: PageProps): JSX.Element {
  const ids = useMemo(() => parseRuns(place.query.get("runs") ?? ""), [place.query.get("runs")]);
  const [tab] = useParameter("tab", "table");
  const [value] = useParameter("value", "last");
  const { value: found, error, reload } = useComparison(workspace, ids);
  const metricValue: MetricValue = METRIC_VALUES.find((each) => each === value) ?? "last";
  const runs = found?.runs;
  const groups = useMemo(() => makeGroups(runs ?? [], metricValue, guessGoal), [runs, metricValue]);
  const kept = Object.fromEntries(place.query.entries());
  const tabs = TABS.map(([id, label]) => ({ id, label, href: formatAddress(workspace, "compare", [], { ...kept, tab: id === "table" ? "" : id }) }));
  const change = (next: readonly string[]) => setParameters({ runs: next.join(",") }, { replace: false });
  const baseline = runs?.findIndex((each) => each.record.id === place.query.get("base")) ?? -1;
  const props = { workspace, groups, runs: runs ?? [], baseline: Math.max(0, baseline) };
  const archived = (runs ?? []).filter((each) => each.record.archived_at !== null);
  return (
    <section aria-labelledby="compare-title">
      <div class="row">
        <h1 id="compare-title">Compare {runs ? `${runs.length} ${runs.length === 1 ? "run" : "runs"}` : "runs"}</h1>
        <span class="spacer" />
        <AddRun workspace={workspace} ids={ids} onAdd={(id) => change([...ids, id])} />
      </div>
      {error && <ErrorBox error={error} onRetry={reload} />}
      {!found && !error && <Loading />}
      {found && found.missing.length > 0 && (
        <div class="compare-notice" role="status">
          <span>Not in this workspace, or deleted: {found.missing.join(", ")}.</span>
          <button type="button" onClick={() => change(ids.filter((each) => !found.missing.includes(each)))}>Leave out</button>
        </div>
      )}
      {archived.length > 0 && <p class="muted">Archived: {archived.map((each) => nameRun(each.record)).join(", ")}.</p>}
      {found && !found.runs.length && (
        <Empty title="Choose runs to compare.">
          <p class="muted">Select runs in the <Link href={formatAddress(workspace, "runs")}>table of runs</Link>, or add one above by its id.</p>
        </Empty>
      )}
      {found && found.runs.length > 0 && (
        <>
          <Tabs tabs={tabs} current={tab} label="Parts of the comparison" />
          <div class="compare-body">
            {tab === "curves" ? (
              <CompareCurves {...props} />
            ) : tab === "code" ? (
              <CodeDifferences {...props} />
            ) : tab === "charts" ? (
              <CompareCharts {...props} />
            ) : (
              <DifferenceTable {...props} value={metricValue} onRemove={(id) => change(ids.filter((each) => each !== id))} />
            )}
          </div>
        </>
      )}
    </section>
  );
}

const OFFERED = 50;

/** A field for the id of a run, which offers the newest ones. */
function AddRun({ workspace, ids, onAdd }: { workspace: string; ids: readonly string[]; onAdd: (id: string) => void }): JSX.Element {
  const [text, setText] = useState("");
  const newest = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/runs", { workspace, limit: OFFERED, columns: ["id", "name", "experiment"] }, { signal }), [workspace]);
  const offered = (newest.value?.rows ?? []).filter((each) => !ids.includes(String(each["id"])));
  const isFull = ids.length >= MOST_RUNS;
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        const id = text.trim();
        if (id && !isFull) onAdd(id);
        setText("");
      }}
    >
      <input aria-label="Id of a run" placeholder="Id of a run" list="compare-runs" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <datalist id="compare-runs">
        {offered.map((each) => (
          <option key={String(each["id"])} value={String(each["id"])}>{[each["name"], each["experiment"]].filter(Boolean).join(" · ")}</option>
        ))}
      </datalist>
      <button type="submit" disabled={isFull} title={isFull ? `At most ${MOST_RUNS} runs can be compared` : ""}>Add run</button>
    </form>
  );
}
