/** Facts about a run in the words of the page. Pure. */
import type { RunRecord } from "../../api/types";

const ENDED: ReadonlySet<string> = new Set(["Completed", "Failed", "Canceled"]);

export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

export function nameOf(run: Pick<RunRecord, "display_name" | "id">): string {
  return run.display_name || run.id;
}

/** Whether it is the parent of a sweep, which has a page of its own. */
export function isSweep(run: Pick<RunRecord, "type">): boolean {
  return run.type === "hyperdrive";
}

interface Spec {
  script?: string;
  command?: string[];
  arguments?: string[];
  node_count?: number;
  distribution?: { kind?: string; process_count_per_node?: number; process_count?: number | null };
  source_directory?: string;
  environment_name?: string;
  environment_version?: string;
  max_retries?: number;
  priority?: number;
  framework?: string;
}

/** The specification of a job; undefined for a run without one. */
export function readSpec(text: string): Spec | undefined {
  if (!text) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Spec) : undefined;
  } catch {
    return undefined;
  }
}

/** How many processes a job has, at least. */
export function countRanks(text: string): number {
  const spec = readSpec(text);
  const { kind, process_count_per_node: each = 1, process_count: all } = spec?.distribution ?? {};
  if (all) return all;
  const nodes = spec?.node_count ?? 1;
  return kind === "parameter_server" ? Math.max(2, nodes) : nodes * each;
}
