/** What a deletion removes, in words. */
import type { Removal } from "../../api/types";
import { formatBytes } from "../../text/numbers";

export function countRuns(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "run" : "runs"}`;
}

/** What is deleted, and how many of the selected runs stay because they have not ended. */
export function describeRemoval(removal: Removal, names: readonly string[], active: number): string {
  const shown = names.slice(0, 5).join(", ") + (names.length > 5 ? ` and ${names.length - 5} more` : "");
  const children = removal.children ? `, with ${removal.children} child ${removal.children === 1 ? "run" : "runs"}` : "";
  const what = `${shown}${children}: metrics, logs and ${formatBytes(removal.bytes)} of files will be deleted. This cannot be undone.`;
  return active ? `${what} ${countRuns(active)} of the selection ${active === 1 ? "has" : "have"} not ended and will stay.` : what;
}
