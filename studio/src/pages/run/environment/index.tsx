import type { JSX } from "preact";
import type { RunTabProps } from "../tab";

export function EnvironmentTab({ run }: RunTabProps): JSX.Element {
  return <p class="muted">Environment of {run.id}</p>;
}
