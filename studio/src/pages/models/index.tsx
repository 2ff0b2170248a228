import type { JSX } from "preact";
import type { PageProps } from "../page";

export function ModelsPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Models">
      <h1>Models</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
