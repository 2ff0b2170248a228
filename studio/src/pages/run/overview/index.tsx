/** The state of a run and its reason first, then everything that describes it. */
import type { ComponentChildren, JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { formatAddress } from "../../../address";
import { call } from "../../../api/client";
import { useChanges } from "../../../api/events";
import { useResource } from "../../../api/resource";
import type { RunRecord, RunUse } from "../../../api/types";
import { attempt } from "../../../components/actions";
import { CodeBlock } from "../../../components/code";
import { type Fact, Facts } from "../../../components/facts";
import { Labels } from "../../../components/labels";
import { Link } from "../../../components/link";
import { Age, Duration } from "../../../components/time";
import { useMay } from "../../../session";
import { formatBytes, formatDate, toNumber } from "../../../text/numbers";
import { parseArguments } from "../arguments";
import { writeCommands } from "../commands";
import { useGrowth } from "../growth";
import { isSweep, nameOf, readSpec } from "../run_words";
import { useRunUse } from "../use";
import type { RunTabProps } from "../tab";
import { Children } from "./children";
import { Editable } from "./editable";
import { Lineage } from "./lineage";
import { Markdown } from "./markdown";
import { MetricTable } from "./metrics";
import { StateBox } from "./state";

const MOST_CHILDREN = 20;

export function OverviewTab({ workspace, run, growth, reload }: RunTabProps): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const which = { workspace, run_id: run.id };
  const explanation = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/explanation", which, { signal }),
    [workspace, run.id, run.status, run.waiting_for],
  );
  const lineage = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/lineage", which, { signal }),
    [workspace, run.id, run.status],
  );
  const children = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/children", { ...which, limit: MOST_CHILDREN }, { signal }),
    [workspace, run.id, run.status],
  );
  const metrics = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/metric-summaries", which, { signal }),
    [workspace, run.id, run.status],
  );
  useGrowth(growth, useThrottled(metrics.reload));
  const renewChildren = useThrottled(() => {
    children.reload();
    lineage.reload();
  });
  const known = new Set(children.value?.runs.map((each) => each.id));
  useChanges(workspace, (changes) => {
    const isMine = !changes.whole || changes.runs.some((each) => (each as { id: string }).id === run.id);
    if (isMine) reload();
    const isFamily = changes.runs.some((each) => {
      const { id, kinds } = each as { id: string; kinds: string[] };
      return known.has(id) ? !kinds.every((kind) => kind === "metrics") : kinds.includes("created");
    });
    if (!changes.whole || isFamily) renewChildren();
  });
  const save = async (changes: { display_name?: string; description?: string }) => {
    const isSaved = await attempt(() => call("PATCH /api/v1/workspaces/{workspace}/runs/{run_id}", { ...which, ...changes }), "");
    if (isSaved) reload();
    return isSaved;
  };
  const renew = (isDone: boolean) => {
    if (isDone) reload();
    return isDone;
  };
  const spec = useMemo(() => readSpec(run.spec), [run.spec]);
  const use = useRunUse(workspace, run);
  return (
    <div class="stack">
      <StateBox workspace={workspace} run={run} explanation={explanation.value?.status === run.status ? explanation.value : undefined} />
      {run.warnings.length > 0 && (
        <section class="state-box state-waiting" aria-label="Warnings">
          <h2>{run.warnings.length === 1 ? "Warning" : "Warnings"}</h2>
          <ul>{run.warnings.map((each, n) => <li key={n}>{each}</li>)}</ul>
        </section>
      )}
      <div class="run-columns">
        <div class="stack">
          <section class="card stack-small" aria-label="About this run">
            <Editable what="name" text={run.display_name} onSave={mayChange ? (text) => save({ display_name: text }) : undefined}>
              <h2 class="run-name">{nameOf(run)}</h2>
            </Editable>
            <Editable what="description" text={run.description} isLong onSave={mayChange ? (text) => save({ description: text }) : undefined}>
              {run.description ? <Markdown source={run.description} /> : <p class="muted">No description</p>}
            </Editable>
            <Labels
              title="Tags"
              values={run.tags}
              onAdd={
                mayChange
                  ? async (name, value) =>
                      renew(await attempt(() => call("PATCH /api/v1/workspaces/{workspace}/runs/{run_id}/tags", { ...which, tags: { [name]: value } }), ""))
                  : undefined
              }
              onRemove={
                mayChange
                  ? async (name) => renew(await attempt(() => call("DELETE /api/v1/workspaces/{workspace}/runs/{run_id}/tags", { ...which, names: [name] }), ""))
                  : undefined
              }
            />
          </section>
          {metrics.value && <MetricTable workspace={workspace} run={run} metrics={metrics.value.metrics} />}
          {children.value && <Children workspace={workspace} run={run} page={children.value} total={lineage.value?.children ?? children.value.runs.length} />}
          <Arguments run={run} />
          <Repeat run={run} workspace={workspace} />
        </div>
        <div class="stack">
          <section class="card stack-small" aria-label="Details">
            <h2>Details</h2>
            <Facts facts={[...listFacts(run, workspace, spec), ["Uses now", run.status === "Running" && use && describeUse(use)]]} />
          </section>
          {lineage.value && <Lineage workspace={workspace} lineage={lineage.value} />}
          <Properties run={run} />
        </div>
      </div>
    </div>
  );
}

const PAUSE = 300;

/** Calls at most a few times each second, and once more after the last call. */
function useThrottled(work: () => void): () => void {
  const latest = useRef(work);
  latest.current = work;
  const timer = useRef(0);
  return () => {
    if (timer.current) return;
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      latest.current();
    }, PAUSE);
  };
}

function listFacts(run: RunRecord, workspace: string, spec: ReturnType<typeof readSpec>): Fact[] {
  const time = (at: unknown) => at !== null && <><span>{formatDate(toNumber(at))}</span> <span class="muted"><Age at={at} /></span></>;
  const nodes = run.nodes.length ? run.nodes.join(", ") : spec ? "" : undefined;
  return [
    ["Run id", <code>{run.id}</code>],
    ["Experiment", <Link href={formatAddress(workspace, "runs", [], { filter: `experiment = ${JSON.stringify(run.experiment)}` })}>{run.experiment}</Link>],
    ["Submitted by", run.submitted_by],
    ["Created", time(run.created_at)],
    ["Started", time(run.started_at)],
    ["Ended", time(run.ended_at)],
    ["Duration", run.started_at !== null && <Duration from={run.started_at} to={run.ended_at} />],
    ["Target", run.target && <Link href={formatAddress(workspace, "queue", [run.target])}>{run.target}</Link>],
    [run.nodes.length === 1 ? "Node" : "Nodes", nodes],
    ["Priority", spec?.priority !== 0 && spec?.priority],
    ["Script", spec?.script && <Link href={formatAddress(workspace, "runs", [run.id, "code"])}>{spec.script}</Link>],
    ["Framework", spec?.framework !== "Python" && spec?.framework],
    ["Processes", describeProcesses(spec)],
    ["Environment", spec && <Link href={formatAddress(workspace, "runs", [run.id, "environment"])}>{describeEnvironment(spec)}</Link>],
    ["Snapshot", run.snapshot_id && <code>{run.snapshot_id.slice(0, 12)}</code>],
    ["Sweep", isSweep(run) && <Link href={formatAddress(workspace, "sweeps", [run.id])}>Open the sweep</Link>],
    ["Archived", time(run.archived_at)],
  ];
}

function describeUse({ cpu_percent: percent, memory, processes }: RunUse): string {
  const many = processes === 1 ? "1 process" : `${processes} processes`;
  return `${Math.round(toNumber(percent))} % of one CPU and ${formatBytes(memory)} in ${many}`;
}

function describeProcesses(spec: ReturnType<typeof readSpec>): string {
  const { kind, process_count_per_node: each = 1, process_count: all } = spec?.distribution ?? {};
  const nodes = spec?.node_count ?? 1;
  if (!spec || !kind || kind === "single") return "";
  const count = all ?? nodes * each;
  return `${count} on ${nodes === 1 ? "1 node" : `${nodes} nodes`} (${kind.replace("_", " ")})`;
}

function describeEnvironment(spec: NonNullable<ReturnType<typeof readSpec>>): string {
  if (!spec.environment_name) return "Packages of this run";
  return spec.environment_version ? `${spec.environment_name} version ${spec.environment_version}` : spec.environment_name;
}

function Arguments({ run }: { run: RunRecord }): JSX.Element | null {
  const spec = readSpec(run.spec);
  const words = spec?.script ? (spec.arguments ?? []) : (spec?.command ?? []);
  if (!words.length) return null;
  return (
    <section class="card stack-small" aria-label="Arguments">
      <h2>{spec?.script ? "Arguments" : "Command"}</h2>
      {spec?.script ? (
        <table class="arguments">
          <tbody>
            {parseArguments(words).map((row, n) => (
              <tr key={n}>
                <th scope="row" class="mono">{row.name}</th>
                <td class="mono">{row.value ?? <span class="muted">set</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <pre class="state-text" tabIndex={0}>{words.join(" ")}</pre>
      )}
    </section>
  );
}

function Properties({ run }: { run: RunRecord }): JSX.Element | null {
  const names = Object.keys(run.properties).sort();
  if (!names.length) return null;
  return (
    <section class="card stack-small" aria-label="Properties">
      <h2>Properties</h2>
      <Facts facts={names.map((name) => [name, run.properties[name]])} />
    </section>
  );
}

function Repeat({ run, workspace }: { run: RunRecord; workspace: string }): JSX.Element | null {
  const commands = useMemo(() => writeCommands(run, workspace, location.origin), [run, workspace]);
  if (!commands) return null;
  return (
    <section class="card stack-small" aria-label="How to repeat it">
      <h2>How to repeat it</h2>
      <p class="muted">"Retry" and "Rerun with changes" submit the same code and packages again. By hand:</p>
      <Way title="From the command line">
        <CodeBlock label="Get its code into a folder named code" text={commands.restore} />
        {commands.shell && <CodeBlock label="Submit it" text={commands.shell} />}
      </Way>
      <Way title="From Python">
        <CodeBlock label="Get its code into a folder named code" text={commands.restore} />
        <CodeBlock label="Submit it with the same environment" text={commands.python} />
      </Way>
      <Way title="Over HTTP">
        <CodeBlock label="Submit exactly the same" text={commands.http} />
      </Way>
    </section>
  );
}

function Way({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <details class="repeat-way">
      <summary>{title}</summary>
      <div class="stack-small">{children}</div>
    </details>
  );
}
