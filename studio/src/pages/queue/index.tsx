/** What runs where, who waits for what, and what the quotas leave. */
import type { JSX } from "preact";
import { formatAddress, navigate } from "../../address";
import { call } from "../../api/client";
import { useChanges } from "../../api/events";
import { useResource } from "../../api/resource";
import type { QueueEntry, QuotaReport, TargetRecord, WorkspaceUse } from "../../api/types";
import { DangerButton, usePolling } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Facts } from "../../components/facts";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { useMay } from "../../session";
import type { PageProps } from "../page";
import { ActiveRuns } from "./active_runs";
import { assignNodes, describeSize, describeTarget, isCluster, isUnlimited, summarize } from "./compute";
import { MachineUsePart } from "./machine_use";
import { NodeGrid } from "./nodes";
import { QuotaTable } from "./quotas";

// What a run waits for is not in the feed of changes.
const LOOK_SECONDS = 5;

const CREATE_TARGET = `from azureml.core.compute import AmlCompute, ComputeTarget

configuration = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=4)
ComputeTarget.create(workspace, "cpu-cluster", configuration)`;

interface Shown {
  targets: TargetRecord[];
  queue: QueueEntry[];
  quotas: QuotaReport[];
  use: WorkspaceUse | undefined;
}

export function QueuePage({ place, workspace }: PageProps): JSX.Element {
  const [name] = place.rest;
  const shown = useResource(async (signal): Promise<Shown> => {
    const [{ targets }, { queue }, { quotas }, use] = await Promise.all([
      call("GET /api/v1/workspaces/{workspace}/targets", { workspace }, { signal }),
      call("GET /api/v1/workspaces/{workspace}/queue", { workspace, ...(name ? { target: name } : {}) }, { signal }),
      call("GET /api/v1/workspaces/{workspace}/quotas", { workspace }, { signal }),
      // What the machine does now is of use, but not needed.
      call("GET /api/v1/workspaces/{workspace}/machine-use", { workspace }, { signal }).catch(() => undefined),
    ]);
    return { targets, queue, quotas, use };
  }, [workspace, name]);
  useChanges(workspace, shown.reload);
  usePolling(shown.reload, LOOK_SECONDS);

  if (!shown.value) return shown.error ? <ErrorBox error={shown.error} onRetry={shown.reload} /> : <Loading />;
  const stale = shown.error && <ErrorBox error={shown.error} onRetry={shown.reload} />;
  if (name) return <>{stale}<TargetPart workspace={workspace} name={name} shown={shown.value} reload={shown.reload} /></>;
  return <>{stale}<Overview workspace={workspace} shown={shown.value} reload={shown.reload} /></>;
}

interface PartProps {
  workspace: string;
  shown: Shown;
  reload: () => void;
}

function Overview({ workspace, shown, reload }: PartProps): JSX.Element {
  const mayCancel = useMay(workspace, "contributor");
  const { targets, queue, quotas } = shown;
  const limited = quotas.filter(({ quota }) => [quota.runs, quota.nodes, quota.gpus, quota.disk_bytes].some((each) => each !== null));
  return (
    <div class="stack">
      <div>
        <h1>Queue and compute</h1>
        <p class="muted" aria-live="polite">{summarize(queue)}</p>
      </div>
      <section class="cards" aria-label="Compute targets">
        {shown.use && <MachineUsePart machine={shown.use.machine} />}
        {targets.map((target) => (
          <TargetCard key={target.name} workspace={workspace} target={target} queue={queue.filter((run) => run.target === target.name)} />
        ))}
      </section>
      {targets.length === 1 && (
        <details class="hint">
          <summary>Add a compute target</summary>
          <CodeBlock label="Python" text={CREATE_TARGET} />
        </details>
      )}
      <section class="stack" aria-label="Runs that have not ended">
        <h2>Active runs, oldest first</h2>
        {queue.length ? (
          <ActiveRuns workspace={workspace} queue={queue} use={shown.use?.runs} hasTarget mayCancel={mayCancel} onChange={reload} />
        ) : (
          <Empty title="Nothing runs or waits.">
            <CodeBlock label="Submit a run" text={`trainmaster submit . train.py --workspace ${workspace}`} />
          </Empty>
        )}
      </section>
      {limited.length > 0 && (
        <section class="stack" aria-label="Quotas">
          <h2>Quotas</h2>
          <QuotaTable quotas={limited} />
        </section>
      )}
    </div>
  );
}

function TargetCard({ workspace, target, queue }: { workspace: string; target: TargetRecord; queue: QueueEntry[] }): JSX.Element {
  return (
    <article class="card stack-small" aria-label={target.name}>
      <div class="row">
        <h2><Link href={formatAddress(workspace, "queue", [target.name])}>{target.name}</Link></h2>
        <span class="spacer" />
        <span class="muted small">{describeLoad(target, queue)}</span>
      </div>
      <p class="muted small">{describeTarget(target)}. {describeSize(target)}.</p>
      <NodeGrid workspace={workspace} target={target} queue={queue} />
    </article>
  );
}

function describeLoad(target: TargetRecord, queue: readonly QueueEntry[]): string {
  const used = assignNodes(target, queue).filter((node) => node.runs.length).length;
  const waiting = queue.filter((run) => !run.nodes.length).length;
  const words = isCluster(target) ? "used from here" : "in use";
  return `${isUnlimited(target) ? used : `${used} of ${target.nodes}`} ${words}${waiting ? `, ${waiting} waiting` : ""}`;
}

function TargetPart({ workspace, name, shown, reload }: PartProps & { name: string }): JSX.Element {
  const mayCancel = useMay(workspace, "contributor");
  const mayDelete = useMay(workspace, "owner");
  const target = shown.targets.find((each) => each.name === name);
  if (!target) {
    return (
      <Empty title={`There is no compute target "${name}".`}>
        <p><Link href={formatAddress(workspace, "queue")}>All compute targets</Link></p>
      </Empty>
    );
  }
  return (
    <div class="stack">
      <p class="path"><Link href={formatAddress(workspace, "queue")}>Queue and compute</Link></p>
      <div class="row">
        <h1>{target.name}</h1>
        <span class="spacer" />
        {mayDelete && target.name !== "local" && (
          <DangerButton
            label="Delete"
            title={`Delete the compute target ${target.name}?`}
            text="Its machines are left as they are. Runs that ended on it keep their files."
            action="Delete the target"
            done={`${target.name} is deleted.`}
            work={() => call("DELETE /api/v1/workspaces/{workspace}/targets/{name}", { workspace, name: target.name })}
            onDone={() => navigate(formatAddress(workspace, "queue"))}
          />
        )}
      </div>
      <Facts
        facts={[
          ["Kind", describeTarget(target)],
          ["Size", describeSize(target)],
          ["In use", describeLoad(target, shown.queue)],
        ]}
      />
      <NodeGrid workspace={workspace} target={target} queue={shown.queue} />
      {target.engine === "local" && shown.use && <MachineUsePart machine={shown.use.machine} />}
      <section class="stack" aria-label="Runs that have not ended">
        <h2>Active runs, oldest first</h2>
        {shown.queue.length ? (
          <ActiveRuns workspace={workspace} queue={shown.queue} use={shown.use?.runs} hasTarget={false} mayCancel={mayCancel} onChange={reload} />
        ) : (
          <Empty title="No run uses this target or waits for it.">
            <CodeBlock label="Use it" text={`estimator = Estimator(source_directory=".", entry_script="train.py", compute_target="${target.name}")`} />
          </Empty>
        )}
      </section>
      <details class="hint">
        <summary>How to use it</summary>
        <CodeBlock
          label="Python"
          text={`target = ComputeTarget(workspace, "${target.name}")\nrun = experiment.submit(Estimator(".", entry_script="train.py", compute_target=target))`}
        />
      </details>
    </div>
  );
}
