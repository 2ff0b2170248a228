import type { JSX } from "preact";

interface Counts {
  going: number;
  completed: number;
  cut: number;
  canceled: number;
  failed: number;
}

/** How far a sweep is: completed, cut or cancelled, failed and active trials of the total. The text beside it has the numbers. */
export function Progress({ counts, total }: { counts: Counts; total: number }): JSX.Element {
  const parts = [
    ["good", counts.completed],
    ["neutral", counts.cut + counts.canceled],
    ["bad", counts.failed],
    ["active", counts.going],
  ] as const;
  return (
    <div class="sweep-progress" aria-hidden="true">
      {parts.map(([tone, count]) => <span key={tone} class={tone} style={{ width: `${(100 * count) / Math.max(1, total)}%` }} />)}
    </div>
  );
}
