import type { JSX } from "preact";
import { toNumber } from "../../text/numbers";

const [WIDTH, HEIGHT] = [90, 20];

/** A small line without axes. Values that are not numbers are left out. */
export function Sparkline({ values }: { values: readonly unknown[] }): JSX.Element | null {
  const numbers = values.map(toNumber);
  const finite = numbers.filter(Number.isFinite);
  if (finite.length < 2) return null;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const points = numbers.flatMap((each, index) =>
    Number.isFinite(each)
      ? [`${((index / (numbers.length - 1)) * (WIDTH - 4) + 2).toFixed(1)},${(HEIGHT - 3 - ((each - low) / (high - low || 1)) * (HEIGHT - 6)).toFixed(1)}`]
      : [],
  );
  return (
    <svg class="sweep-sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <polyline points={points.join(" ")} />
    </svg>
  );
}
