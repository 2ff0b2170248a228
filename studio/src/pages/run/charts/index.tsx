import type { JSX } from "preact";
import type { RunTabProps } from "../tab";

export function ChartsTab({ run }: RunTabProps): JSX.Element {
  return <p class="muted">Charts of {run.id}</p>;
}
