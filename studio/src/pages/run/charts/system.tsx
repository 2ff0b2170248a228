import type { JSX } from "preact";

/** Why there are no charts of the machine. */
export function NoSystemUse({ isOver }: { isOver: boolean }): JSX.Element {
  return (
    <section class="system-use" aria-label="System use">
      <h2>System use</h2>
      <p class="muted">
        {isOver
          ? "Nothing was measured of this run. It was shorter than a second, or measuring was turned off."
          : "Nothing has been measured yet. CPUs, memory, disk, network and GPUs are measured once the run is a second old."}
      </p>
    </section>
  );
}
