import type { JSX } from "preact";
import type { PageProps } from "../page";

export function ComparePage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Compare">
      <h1>Compare</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
