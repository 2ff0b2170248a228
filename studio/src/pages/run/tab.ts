import type { Place } from "../../address";
import type { RunRecord } from "../../api/types";
import type { Growth } from "./growth";

/** What every tab of the page of a run gets. */
export interface RunTabProps {
  place: Place;
  workspace: string;
  run: RunRecord;
  /** Says when the run has logged or printed more: see `useGrowth`. */
  growth: Growth;
  /** Read the run again, after a change of it. */
  reload: () => void;
}
