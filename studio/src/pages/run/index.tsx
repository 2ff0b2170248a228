import type { JSX } from "preact";
import type { PageProps } from "../page";

export function RunPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Run">
      <h1>Run</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
