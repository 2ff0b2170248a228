/** Colours for canvases, read from theme.css once for each theme. */
import { colorOf, onThemeChange } from "../theme";

const COLORS = 10;
const kept = new Map<string, string>();
const listeners = new Set<() => void>();
let isWatching = false;

/** The value of a colour variable now. */
export function readColor(name: string): string {
  watch();
  let color = kept.get(name);
  if (color === undefined) {
    color = colorOf(name);
    kept.set(name, color);
  }
  return color;
}

/** The variable for the series with this number, from 0; after ten the colours repeat. */
export function seriesVariable(number: number): string {
  return `--series-${(number % COLORS) + 1}`;
}

/** How a series is dashed: those that repeat a colour are told apart by it. */
export function seriesDash(number: number): number[] {
  return [[], [6, 3], [2, 3]][Math.floor(number / COLORS) % 3] ?? [];
}

/** Calls `handle` after the theme has changed, until the returned function is called. */
export function onColorsChange(handle: () => void): () => void {
  watch();
  listeners.add(handle);
  return () => void listeners.delete(handle);
}

function watch(): void {
  if (isWatching) return;
  isWatching = true;
  onThemeChange(() => {
    kept.clear();
    for (const each of [...listeners]) each();
  });
}
