import type { JSX } from "preact";
import { describeStatus } from "../text/status";

/** The state of a run as a coloured mark with its name. */
export function StatusMark({ status }: { status: string }): JSX.Element {
  const { tone, label } = describeStatus(status);
  return <span class={`status status-${tone}`}>{label}</span>;
}
