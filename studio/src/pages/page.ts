import type { Place } from "../address";

/** What every page gets. */
export interface PageProps {
  place: Place;
  workspace: string;
}
