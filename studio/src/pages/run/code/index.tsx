import type { JSX } from "preact";
import type { RunTabProps } from "../tab";

export function CodeTab({ run }: RunTabProps): JSX.Element {
  return <p class="muted">Code of {run.id}</p>;
}
