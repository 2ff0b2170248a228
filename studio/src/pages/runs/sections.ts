/** A table in groups: each group has a header and its own list of runs. Without groups there is one without a header. */
import { formatField, joinFilters, parseColumn, quote } from "./fields";
import { type Row, RunList } from "./run_list";

export interface Section {
  /** Empty for the only one of a table without groups. */
  key: string;
  title: string;
  filter: string;
  list: RunList;
  isOpen: boolean;
}

/** The header of a group, or one of its runs; undefined rows have not been read yet. */
export interface Item {
  section: Section;
  /** Undefined for the header of a group. */
  index: number | undefined;
  row: Row | undefined;
}

export const NONE = "\u0000none";

/** The groups of a field's values, and one for runs without any if the field may be absent. */
export function makeSections(filter: string, group: string, values: readonly string[], open: ReadonlySet<string> | undefined): Section[] {
  if (!group) return [{ key: "", title: "", filter, list: new RunList(), isOpen: true }];
  const keys = group === "experiment" ? [...values] : [...values, NONE];
  return keys.map((key) => ({
    key,
    title: key === NONE ? `Without ${parseColumn(group).name}` : key,
    filter: joinFilters(filter, key === NONE ? `${group} is not set` : `${group} = ${quote(key)}`),
    list: new RunList(),
    isOpen: open?.has(key) ?? false,
  }));
}

export function groupOfTag(name: string): string {
  return formatField("tag", name);
}

function hasHeader(section: Section): boolean {
  return section.key !== "";
}

function sizeOf(section: Section): number {
  // A group in which nothing matches is not shown.
  if (hasHeader(section) && section.list.total === 0) return 0;
  return (hasHeader(section) ? 1 : 0) + (section.isOpen ? section.list.length : 0);
}

/** How many rows the table has, headers of groups included. */
export function countItems(sections: readonly Section[]): number {
  return sections.reduce((sum, each) => sum + sizeOf(each), 0);
}

/** What stands in a row of the table. */
export function findItem(sections: readonly Section[], position: number): Item | undefined {
  let left = position;
  for (const section of sections) {
    const size = sizeOf(section);
    if (left < size) {
      const index = hasHeader(section) ? left - 1 : left;
      return index < 0 ? { section, index: undefined, row: undefined } : { section, index, row: section.list.get(index) };
    }
    left -= size;
  }
  return undefined;
}

/** The part of each section that is in a range of the table. */
export function findRanges(sections: readonly Section[], first: number, last: number): { section: Section; first: number; last: number }[] {
  const found: { section: Section; first: number; last: number }[] = [];
  let start = 0;
  for (const section of sections) {
    const size = sizeOf(section);
    const header = hasHeader(section) ? 1 : 0;
    // One that nothing is known of yet has no rows, and is in view all the same.
    if (start < last && start + Math.max(1, size) > first) {
      found.push({ section, first: Math.max(0, first - start - header), last: section.isOpen ? last - start - header : 0 });
    }
    start += size;
  }
  return found;
}
