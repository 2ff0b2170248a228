/** One run: its state first, then its parts in tabs. The run is followed while it has not ended. */
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { formatAddress, navigate } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { useShortcuts } from "../../components/keyboard";
import { type Tab, Tabs } from "../../components/tabs";
import type { PageProps } from "../page";
import { ChartsTab } from "./charts";
import { CodeTab } from "./code";
import { EnvironmentTab } from "./environment";
import { FilesTab } from "./files";
import { useRunEvents } from "./growth";
import { RunHeader } from "./header";
import { LogsTab } from "./logs";
import { OverviewTab } from "./overview";
import { hasEnded, nameOf } from "./run_words";
import type { RunTabProps } from "./tab";

const TABS: readonly (readonly [string, string, ComponentType<RunTabProps>])[] = [
  ["", "Overview", OverviewTab],
  ["charts", "Charts", ChartsTab],
  ["logs", "Logs", LogsTab],
  ["files", "Files", FilesTab],
  ["code", "Code", CodeTab],
  ["environment", "Environment", EnvironmentTab],
];

/** `/w/<workspace>/runs/<id>` is the overview, `/w/<workspace>/runs/<id>/<tab>` another part. */
export function RunPage({ place, workspace }: PageProps): JSX.Element {
  const runId = place.rest[0] ?? "";
  const part = place.rest[1] ?? "";
  const record = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/runs/{run_id}", { workspace, run_id: runId }, { signal }),
    [workspace, runId],
  );
  const run = record.value;
  const kinds = part === "logs" ? "logs" : "journals";
  const isOver = !run || hasEnded(run.status);
  const growth = useRunEvents({ workspace, runId, kinds, isOver }, record.reload);
  const name = run && nameOf(run);
  useEffect(() => {
    if (name) document.title = `${name} · ${workspace} · Trainmaster`;
    return () => {
      document.title = `${workspace} · Trainmaster`;
    };
  }, [name, workspace]);
  const embed = place.query.get("embed") ?? undefined;
  const tabs: Tab[] = TABS.map(([id, label]) => ({
    id,
    label,
    href: formatAddress(workspace, "runs", id ? [runId, id] : [runId], { embed }),
  }));
  useShortcuts(
    "Run",
    tabs.map((tab, n) => ({ keys: [String(n + 1)], label: tab.label, run: () => navigate(tab.href) })),
  );

  if (record.error && !run) return <ErrorBox error={record.error} onRetry={record.reload} />;
  if (!run) return <Loading />;
  const Content = TABS.find(([id]) => id === part)?.[2];
  return (
    <article class="run-page" aria-label={`Run ${nameOf(run)}`}>
      <RunHeader workspace={workspace} run={run} reload={record.reload} />
      <Tabs tabs={tabs} current={part} label="Parts of the run" />
      <div class="run-part">
        {Content ? (
          <Content place={place} workspace={workspace} run={run} growth={growth} reload={record.reload} />
        ) : (
          <Empty title={`A run has no part "${part}".`} />
        )}
      </div>
    </article>
  );
}
