import type { JSX } from "preact";
import type { PageProps } from "../page";

export function QueuePage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Queue and compute">
      <h1>Queue and compute</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
