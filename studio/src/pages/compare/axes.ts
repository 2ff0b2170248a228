/** The axes of charts over runs that are compared. */
import { type Dimension, makeDimension } from "../../charts/dimension";
import type { Group } from "./rows";
import { isDifferent } from "./rows";

export interface Axes {
  /** What the runs were given. */
  inputs: Dimension[];
  /** What came of it. */
  results: Dimension[];
}

const MOST_CATEGORIES = 30;

/** Arguments that differ, and metrics that at least one run has as a number. */
export function makeAxes(groups: readonly Group[]): Axes {
  const of = (title: string) => groups.find((each) => each.title === title)?.rows ?? [];
  const inputs = of("Arguments")
    .filter(isDifferent)
    .map((row) => makeDimension(`argument:${row.name}`, row.name, row.cells))
    .filter((each) => each.scale.categories.length <= MOST_CATEGORIES);
  const taken = new Set(inputs.map((each) => each.label));
  const results = of("Results")
    .filter((row) => row.numbers.some((each) => each !== undefined))
    .map((row) => makeDimension(`metric:${row.name}`, taken.has(row.name) ? `${row.name} (metric)` : row.name, row.numbers));
  return { inputs, results };
}

const MOST_AXES = 8;

/** The axes in the address, or the first ones. */
export function chooseAxes({ inputs, results }: Axes, text: string): Dimension[] {
  const all = [...inputs, ...results];
  const named = new Set(text ? text.split(",").map(decodeURIComponent) : []);
  const chosen = all.filter((each) => named.has(each.id));
  if (chosen.length) return chosen;
  return [...inputs.slice(0, MOST_AXES - Math.min(3, results.length)), ...results.slice(0, 3)];
}

export function formatAxes(dimensions: readonly Dimension[]): string {
  return dimensions.map((each) => encodeURIComponent(each.id)).join(",");
}
