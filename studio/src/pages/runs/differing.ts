/** Which columns are left if only those that differ are wanted. */
import type { Names } from "./completion";
import { type Column, formatField, parseColumn } from "./fields";
import type { Row } from "./run_list";

/** Without these nobody could tell which run a row is. */
const KEPT = new Set(["name", "status"]);
const MOST = 60;

/** The chosen columns that differ, and before the metrics every argument and tag that does. */
export function chooseDiffering(chosen: readonly Column[], names: Names, rows: readonly Row[]): Column[] {
  const metrics = new Set(names.metrics);
  const kept = chosen.filter((each) => {
    switch (each.kind) {
      case "metric":
      case "line":
        return metrics.has(each.name);
      case "argument":
        return names.arguments.includes(each.name) || differs(rows, each.spec);
      case "tag":
        return names.tags.includes(each.name);
      case "property":
        return names.properties.includes(each.name);
      default:
        return KEPT.has(each.name) || (each.name === "duration" ? true : differs(rows, each.spec));
    }
  });
  const held = new Set(kept.map((each) => `${each.kind} ${each.name}`));
  const added = [
    ...names.arguments.map((name) => parseColumn(formatField("argument", name))),
    ...names.tags.map((name) => parseColumn(formatField("tag", name))),
  ].filter((each) => !held.has(`${each.kind} ${each.name}`));
  const isMetric = (each: Column): boolean => each.kind === "metric" || each.kind === "line";
  return [...kept.filter((each) => !isMetric(each)), ...added, ...kept.filter(isMetric)].slice(0, MOST);
}

function differs(rows: readonly Row[], spec: string): boolean {
  return new Set(rows.map((row) => JSON.stringify(row[spec] ?? null))).size > 1;
}
