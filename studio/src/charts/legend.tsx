import type { JSX } from "preact";
import { formatNumber } from "../text/numbers";
import { isDarkNow } from "./canvas";
import type { ColorBy } from "./coloring";
import { seriesVariable } from "./colors";
import { makeShades } from "./shade";

const MOST_CATEGORIES = 12;

/** What the colours mean. `theme` changes with the theme, so that it is drawn again. */
export function Legend({ color: { dimension, isHighBetter } }: { color: ColorBy; theme: number }): JSX.Element {
  const { scale, label } = dimension;
  if (scale.kind === "category") {
    return (
      <p class="plot-legend small">
        <span class="muted">{label}</span>
        {scale.categories.slice(0, MOST_CATEGORIES).map((each, index) => (
          <span key={each} class="plot-legend-item">
            <span class="plot-swatch" style={{ background: `var(${seriesVariable(index)})` }} /> {each}
          </span>
        ))}
        {scale.categories.length > MOST_CATEGORIES && <span class="muted">and {scale.categories.length - MOST_CATEGORIES} more</span>}
      </p>
    );
  }
  const shades = makeShades(isDarkNow(), 12);
  if (!isHighBetter) shades.reverse();
  return (
    <p class="plot-legend small">
      <span class="muted">{label}</span>
      <span class="number">{formatNumber(scale.low)}</span>
      <span class="plot-ramp" style={{ background: `linear-gradient(to right, ${shades.join(", ")})` }} />
      <span class="number">{formatNumber(scale.high)}</span>
    </p>
  );
}
