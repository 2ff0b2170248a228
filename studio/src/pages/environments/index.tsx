import type { JSX } from "preact";
import type { PageProps } from "../page";

export function EnvironmentsPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Environments">
      <h1>Environments</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
