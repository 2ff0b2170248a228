import type { JSX } from "preact";
import type { PageProps } from "../page";

export function SweepPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Sweep">
      <h1>Sweep</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
