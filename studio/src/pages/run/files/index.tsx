import type { JSX } from "preact";
import type { RunTabProps } from "../tab";

export function FilesTab({ run }: RunTabProps): JSX.Element {
  return <p class="muted">Files of {run.id}</p>;
}
