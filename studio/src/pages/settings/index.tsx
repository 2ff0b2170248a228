import type { JSX } from "preact";
import type { PageProps } from "../page";

export function SettingsPage({ place }: PageProps): JSX.Element {
  return (
    <section aria-label="Settings">
      <h1>Settings</h1>
      <p class="muted">{place.rest.join(" / ")}</p>
    </section>
  );
}
