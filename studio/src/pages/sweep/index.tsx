import type { JSX } from "preact";
import type { PageProps } from "../page";
import { SweepDetail } from "./detail";
import { SweepList } from "./list";

export function SweepPage({ place, workspace }: PageProps): JSX.Element {
  const [runId] = place.rest;
  return runId ? <SweepDetail workspace={workspace} runId={runId} /> : <SweepList workspace={workspace} />;
}
