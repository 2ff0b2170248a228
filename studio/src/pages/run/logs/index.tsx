import type { JSX } from "preact";
import type { RunTabProps } from "../tab";

export function LogsTab({ run }: RunTabProps): JSX.Element {
  return <p class="muted">Logs of {run.id}</p>;
}
