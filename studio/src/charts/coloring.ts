/** Runs coloured by the values of one dimension. */
import { type Dimension, placeValues } from "./dimension";
import { chooseShade, makeShades } from "./shade";

export interface ColorBy {
  dimension: Dimension;
  /** Whether large values are the better ones, which stand out. */
  isHighBetter: boolean;
}

const SERIES = 10;

/** The colour of each run: shades for numbers, the colours of series for categories, and `none` without a value. */
export function colorRuns(
  { dimension, isHighBetter }: ColorBy,
  isDark: boolean,
  colorOf: (name: string) => string,
): string[] {
  const none = colorOf("--line-strong");
  if (dimension.scale.kind === "category") {
    const colors = new Map(dimension.scale.categories.map((each, index) => [each, colorOf(`--series-${(index % SERIES) + 1}`)]));
    return dimension.values.map((each) => (each === null ? none : (colors.get(String(each)) ?? none)));
  }
  const shades = makeShades(isDark);
  return [...placeValues(dimension)].map((place) =>
    Number.isNaN(place) ? none : (shades[chooseShade(place, isHighBetter)] ?? none),
  );
}

/** The order in which runs are drawn: better ones last, above the others. */
export function orderRuns({ dimension, isHighBetter }: ColorBy): Uint32Array {
  const places = placeValues(dimension);
  const weight = (index: number) => {
    const place = places[index] ?? Number.NaN;
    return Number.isNaN(place) ? -1 : isHighBetter ? place : 1 - place;
  };
  return Uint32Array.from(places.keys()).sort((a, b) => weight(a) - weight(b));
}
