/** What is chosen on axes: a range of numbers, or some categories. Runs outside of one of them are faded. */
import { type Dimension, type Scale, type Value, valueAt } from "./dimension";

export type Brush = { from: number; to: number } | { of: readonly string[] };
/** By the id of the dimension. */
export type Brushes = Readonly<Record<string, Brush>>;

/** What lies between two places of an axis; undefined if that is nothing. */
export function makeBrush(scale: Scale, start: number, end: number): Brush | undefined {
  const low = clamp(Math.min(start, end));
  const high = clamp(Math.max(start, end));
  if (scale.kind === "category") {
    const count = scale.categories.length;
    const chosen = scale.categories.filter((_, index) => (index + 1) / count > low && index / count < high);
    return chosen.length && high > low ? { of: chosen } : undefined;
  }
  return high > low ? { from: valueAt(scale, low), to: valueAt(scale, high) } : undefined;
}

function clamp(place: number): number {
  return Math.min(1, Math.max(0, place));
}

export function matches(brush: Brush, value: Value): boolean {
  if (value === null) return false;
  if ("of" in brush) return brush.of.includes(String(value));
  if (typeof value !== "number") return false;
  // The ends of a brush come from pixels: rounding must not exclude the run at the end of the axis.
  const slack = 1e-9 * Math.max(Math.abs(brush.from), Math.abs(brush.to));
  return value >= brush.from - slack && value <= brush.to + slack;
}

/** For each run whether it is within all brushes. Brushes of dimensions that are not there choose nothing. */
export function applyBrushes(dimensions: readonly Dimension[], brushes: Brushes, count: number): Uint8Array {
  const kept = new Uint8Array(count).fill(1);
  for (const { id, values } of dimensions) {
    const brush = brushes[id];
    if (!brush) continue;
    for (let index = 0; index < count; index++) {
      if (kept[index] && !matches(brush, values[index] ?? null)) kept[index] = 0;
    }
  }
  return kept;
}

/** With one brush changed, or without it. */
export function changeBrush(brushes: Brushes, id: string, brush: Brush | undefined): Brushes {
  const { [id]: _, ...others } = brushes;
  return brush ? { ...others, [id]: brush } : others;
}

/** The places of the ends of a brush, for drawing it. */
export function placeBrush(scale: Scale, brush: Brush): readonly [number, number][] {
  if ("of" in brush) {
    const count = scale.categories.length;
    return scale.categories.flatMap((each, index): [number, number][] =>
      brush.of.includes(each) ? [[index / count, (index + 1) / count]] : [],
    );
  }
  if (scale.kind === "category") return [];
  const place = (value: number) =>
    scale.kind === "log"
      ? Math.log(Math.max(value, Number.MIN_VALUE) / scale.low) / Math.log(scale.high / scale.low)
      : (value - scale.low) / (scale.high - scale.low);
  return [[clamp(place(brush.from)), clamp(place(brush.to))]];
}

/** As a parameter of the address. */
export function formatBrushes(brushes: Brushes): string {
  return Object.keys(brushes).length ? JSON.stringify(brushes, (_, each) => (typeof each === "number" ? Number(each.toPrecision(12)) : each)) : "";
}

/** From a parameter of the address; whatever is not a brush is left out. */
export function parseBrushes(text: string): Brushes {
  let given: unknown;
  try {
    given = JSON.parse(text || "{}");
  } catch {
    return {};
  }
  if (typeof given !== "object" || given === null || Array.isArray(given)) return {};
  const found: [string, Brush][] = [];
  for (const [id, each] of Object.entries(given)) {
    const brush = parseBrush(each);
    if (brush) found.push([id, brush]);
  }
  return Object.fromEntries(found);
}

function parseBrush(given: unknown): Brush | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  const { from, to, of } = given as Record<string, unknown>;
  if (Array.isArray(of)) return { of: of.filter((each): each is string => typeof each === "string") };
  if (typeof from === "number" && typeof to === "number" && from <= to) return { from, to };
  return undefined;
}
