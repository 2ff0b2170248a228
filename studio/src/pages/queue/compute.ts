/** Compute targets in a user's words, and which run has which node. */
import type { QueueEntry, Quota, QuotaReport, RunUse, TargetRecord } from "../../api/types";
import { formatBytes, toNumber } from "../../text/numbers";

export interface Node {
  index: number;
  runs: QueueEntry[];
}

/** The nodes of a target with the runs that have them. */
export function assignNodes(target: Pick<TargetRecord, "nodes">, queue: readonly QueueEntry[]): Node[] {
  const nodes: Node[] = Array.from({ length: target.nodes }, (_, index) => ({ index, runs: [] }));
  for (const run of queue) {
    for (const index of run.nodes) nodes[index]?.runs.push(run);
  }
  return nodes;
}

/** Runs in the order of their first node, each with a number for its colour. */
export function numberRuns(nodes: readonly Node[]): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  for (const node of nodes) {
    for (const run of node.runs) if (!numbers.has(run.run_id)) numbers.set(run.run_id, numbers.size);
  }
  return numbers;
}

export function countWord(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** What a target on Kubernetes has if its size is left to the cluster (UNLIMITED_NODES of kubernetes_settings.py). */
const UNLIMITED_NODES = 1000;

/** Whether the cluster decides how many nodes there are, so that there is no use in drawing those that are free. */
export function isUnlimited({ engine, nodes }: Pick<TargetRecord, "engine" | "nodes">): boolean {
  return engine === "kubernetes" && nodes === UNLIMITED_NODES;
}

/** Whether others use the same machines, so that only the cluster knows which are free. */
export function isCluster({ engine }: Pick<TargetRecord, "engine">): boolean {
  return engine === "slurm" || engine === "slurm-ssh" || engine === "kubernetes";
}

/** "4 nodes, each with 8 CPUs and 2 GPUs" */
export function describeSize(target: TargetRecord): string {
  const { engine, nodes, cpus_per_node: cpus, gpus_per_node: gpus } = target;
  if (engine === "kubernetes" && !nodes) return "Only recorded: it is not known how to reach it";
  const parts = [cpus ? countWord(cpus, "CPU") : "", gpus ? countWord(gpus, "GPU") : ""].filter(Boolean).join(" and ");
  const each = nodes === 1 ? "with" : "each with";
  const count = isUnlimited(target) ? "As many nodes as the cluster gives" : countWord(nodes, "node");
  return count + (parts ? `, ${each} ${parts}` : "");
}

/** What a target is. */
export function describeTarget(target: TargetRecord): string {
  const options = target.options;
  if (target.engine === "kubernetes") {
    const context = options["context"] ? `, context ${options["context"]}` : "";
    const namespace = options["namespace"] ? `, namespace ${options["namespace"]}` : "";
    return `Kubernetes cluster${context}${namespace}`;
  }
  if (target.engine === "slurm" || target.engine === "slurm-ssh") {
    const partition = options["partition"] ? `, partition ${options["partition"]}` : "";
    const login = options["login"] ? `, submitted through ${options["login"]}` : "";
    return `Slurm cluster${partition}${login}`;
  }
  if (target.engine === "ssh") {
    const hosts = Array.isArray(options["hosts"]) ? options["hosts"].map(describeHost) : [];
    const named = hosts.length ? hosts : [options["address"]].filter(Boolean).map(String);
    if (!named.length) return "Machines over SSH";
    const shown = named.slice(0, 4).join(", ") + (named.length > 4 ? ` and ${named.length - 4} more` : "");
    return named.length === 1 ? `Machine over SSH: ${shown}` : `${named.length} machines over SSH: ${shown}`;
  }
  if (target.engine === "local") return target.name === "local" ? "The machine of the workspace" : "On the machine of the workspace";
  return target.engine;
}

/** The name of a host, which may be given as a text or with options. */
function describeHost(host: unknown): string {
  if (typeof host !== "object" || host === null) return String(host);
  const { address, host: name } = host as Record<string, unknown>;
  return String(address ?? name ?? "");
}

/** "2 run, 3 wait" */
export function summarize(queue: readonly QueueEntry[]): string {
  const waiting = queue.filter(isWaiting).length;
  const running = queue.length - waiting;
  if (!queue.length) return "Nothing runs or waits.";
  const parts = [];
  if (running) parts.push(running === 1 ? "1 run is executing" : `${running} runs are executing`);
  if (waiting) parts.push(`${waiting}${running ? "" : waiting === 1 ? " run" : " runs"} ${waiting === 1 ? "waits" : "wait"}`);
  return `${parts.join(", ")}.`;
}

export function isWaiting(run: Pick<QueueEntry, "status" | "waiting_for">): boolean {
  return ["NotStarted", "Queued", "Preparing"].includes(run.status) || !!run.waiting_for;
}

/** Whose quota it is. */
export function describeOwner(owner: string): string {
  return owner === "" ? "Whole workspace" : owner === "*" ? "Each other user" : owner;
}

export const LIMITS = ["runs", "nodes", "gpus", "disk_bytes"] as const;
export type Limit = (typeof LIMITS)[number];
export const LIMIT_NAMES: Readonly<Record<Limit, string>> = { runs: "Runs at once", nodes: "Nodes", gpus: "GPUs", disk_bytes: "Disk" };

export function formatAmount(limit: Limit, amount: number): string {
  return limit === "disk_bytes" ? formatBytes(amount) : String(amount);
}

/** "2 of 4", and "2" without a limit; the quota of each other user has no use of its own. */
export function describeUse(report: QuotaReport, limit: Limit): string {
  const most = report.quota[limit];
  if (report.quota.owner === "*") return most === null ? "no limit" : `at most ${formatAmount(limit, most)}`;
  const used = formatAmount(limit, report[limit]);
  return most === null ? used : `${used} of ${formatAmount(limit, most)}`;
}

/** How full a quota is, from 0 to 1; undefined without a limit. */
export function shareOf(report: QuotaReport, limit: Limit): number | undefined {
  const most = report.quota[limit];
  if (most === null || report.quota.owner === "*") return undefined;
  return most === 0 ? 1 : Math.min(1, report[limit] / most);
}

/** The words of a person for an amount of disk as bytes: "10 GB", "500MB"; undefined if they cannot be read. */
export function parseAmount(limit: Limit, text: string): number | null | undefined {
  const found = /^(\d+(?:\.\d+)?)\s*(kB|MB|GB|TB|B)?$/i.exec(text.trim());
  if (!text.trim()) return null;
  if (!found || (found[2] && limit !== "disk_bytes")) return undefined;
  const unit = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 }[(found[2] ?? "b").toLowerCase()] ?? 1;
  const amount = Number(found[1]) * unit;
  return Number.isInteger(amount) ? amount : limit === "disk_bytes" ? Math.round(amount) : undefined;
}

export function limitsOf(quota: Quota): Record<Limit, number | null> {
  return { runs: quota.runs, nodes: quota.nodes, gpus: quota.gpus, disk_bytes: quota.disk_bytes };
}

/** "1.5 CPUs, 2.0 GB" */
export function describeRunUse(use: RunUse | undefined): string {
  if (!use?.processes) return "";
  return `${Number((toNumber(use.cpu_percent) / 100).toFixed(1))} CPUs, ${formatBytes(use.memory)}`;
}

/** How much of something is used, from 0 to 1. */
export function shareUsed(used: number, total: number): number {
  return total > 0 ? Math.min(1, Math.max(0, used / total)) : 0;
}
