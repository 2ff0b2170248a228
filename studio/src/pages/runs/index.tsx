import type { JSX } from "preact";
import type { PageProps } from "../page";

export function RunsPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Runs">
      <h1>Runs</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
