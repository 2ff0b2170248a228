import type { JSX } from "preact";
import type { PageProps } from "../page";

export function ServicesPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Services">
      <h1>Services</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
