import type { JSX } from "preact";
import type { PageProps } from "../page";

export function DataPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Data">
      <h1>Data</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
