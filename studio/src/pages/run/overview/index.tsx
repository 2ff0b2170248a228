import type { JSX } from "preact";
import type { RunTabProps } from "../tab";

export function OverviewTab({ run }: RunTabProps): JSX.Element {
  return <p class="muted">Overview of {run.id}</p>;
}
