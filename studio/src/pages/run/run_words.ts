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
