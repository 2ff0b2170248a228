/** Names of fields as the filter language writes them (docs/guide/search.md), and the columns of the table. */

/** What a column shows. `line` is a small chart of a metric, which the filter language does not have: `~loss`. */
export interface Column {
  /** As it stands in the address. */
  spec: string;
  kind: "column" | "argument" | "metric" | "tag" | "property" | "line";
  name: string;
  /** Of a metric: last, min, max or count. */
  part: string;
}

const LINE = "~";
const PARTS = new Set(["min", "max", "count", "last"]);
const KINDS: Readonly<Record<string, Column["kind"]>> = {
  arg: "argument",
  metric: "metric",
  tag: "tag",
  property: "property",
};

/** The columns that every run has, and how they are called. */
export const BUILT_IN: Readonly<Record<string, string>> = {
  name: "Name",
  status: "Status",
  experiment: "Experiment",
  number: "Number",
  created: "Created",
  started: "Started",
  ended: "Ended",
  duration: "Duration",
  user: "User",
  target: "Compute target",
  type: "Type",
  description: "Description",
  waiting_for: "Waiting for",
  error: "Error",
  tags: "All tags",
  snapshot: "Snapshot",
  parent: "Parent run",
  archived: "Archived",
  id: "Run id",
};
/** Columns that a search answers but cannot sort by. */
const UNSORTED = new Set(["tags", "waiting_for", "error", "description"]);

/** A name in the form the filter language reads: quoted if it has other marks than a word. */
export function quoteName(name: string): string {
  return /^[\w-]+$/.test(name) ? name : quote(name);
}

/** A text in quotes. */
export function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

export function formatField(kind: Column["kind"], name: string, part = ""): string {
  if (kind === "line") return LINE + quoteName(name);
  if (kind === "column") return name;
  const word = Object.entries(KINDS).find(([, each]) => each === kind)?.[0] ?? "arg";
  return `${word}.${quoteName(name)}${part && part !== "last" ? `.${part}` : ""}`;
}

/** What a column of the address shows. A name that no run has of itself is an argument. */
export function parseColumn(spec: string): Column {
  if (spec.startsWith(LINE)) return { spec, kind: "line", name: splitParts(spec.slice(1)).join("."), part: "" };
  if (spec in BUILT_IN) return { spec, kind: "column", name: spec, part: "" };
  const parts = splitParts(spec);
  const kind = parts.length > 1 ? KINDS[parts[0] ?? ""] : undefined;
  if (!kind) return { spec, kind: "argument", name: parts.join("."), part: "" };
  const last = parts.at(-1) ?? "";
  if (kind === "metric") {
    const hasPart = parts.length > 2 && PARTS.has(last);
    return { spec, kind, name: parts.slice(1, hasPart ? -1 : undefined).join("."), part: hasPart ? last : "last" };
  }
  return { spec, kind, name: parts.slice(1).join("."), part: "" };
}

/** The parts of `metric."val loss".min`. */
function splitParts(text: string): string[] {
  const found = text.match(/"(?:\\.|[^"\\])*"|[^."]+/g) ?? [];
  return found.map((each) => (each.startsWith('"') ? each.slice(1, -1).replace(/\\(.)/g, "$1") : each));
}

/** The columns of the address: a list with commas, which may also stand in quotes. Each column once. */
export function parseColumns(text: string): Column[] {
  const found = text.match(/(?:"(?:\\.|[^"\\])*"|[^,"])+/g) ?? [];
  return [...new Set(found.map((each) => each.trim()).filter(Boolean))].map(parseColumn);
}

export function formatColumns(columns: readonly Column[]): string {
  return columns.map((each) => each.spec).join(",");
}

export function describeColumn(column: Column): { label: string; note: string } {
  switch (column.kind) {
    case "column":
      return { label: BUILT_IN[column.name] ?? column.name, note: "" };
    case "metric":
      return { label: column.name, note: column.part === "last" ? "" : column.part };
    case "tag":
    case "property":
      return { label: column.name, note: column.kind };
    case "line":
      return { label: column.name, note: "chart" };
    default:
      return { label: column.name, note: "" };
  }
}

export function isSortable(column: Column): boolean {
  return column.kind !== "line" && !UNSORTED.has(column.spec);
}

export function isNumeric(column: Column): boolean {
  return column.kind === "metric" || column.spec === "number" || column.spec === "duration";
}

/** What every row needs, whatever is shown: its link, its state, its place. */
export const ALWAYS: readonly string[] = ["id", "name", "number", "experiment", "status", "created", "started", "ended"];

/** The fields to ask for so that these columns can be shown. */
export function fieldsOf(columns: readonly Column[]): string[] {
  // The duration is computed from the times, so that it goes on without a request.
  const wanted = columns.filter((each) => each.kind !== "line" && each.spec !== "duration").map((each) => each.spec);
  return [...new Set([...ALWAYS, ...wanted])];
}

/** Metrics whose small charts are shown. */
export function linesOf(columns: readonly Column[]): string[] {
  return columns.filter((each) => each.kind === "line").map((each) => each.name);
}

const WIDTHS: Readonly<Record<string, number>> = {
  name: 220,
  status: 125,
  experiment: 150,
  number: 80,
  created: 100,
  started: 100,
  ended: 100,
  duration: 115,
  user: 95,
  description: 260,
  waiting_for: 260,
  error: 320,
  tags: 260,
  id: 300,
  snapshot: 220,
  parent: 220,
};

export function defaultWidth(column: Column): number {
  if (column.kind === "line") return 120;
  const { label, note } = describeColumn(column);
  const length = label.length + (note ? note.length + 1 : 0);
  return column.kind === "column" ? WIDTHS[column.name] ?? 120 : Math.min(240, Math.max(95, 9 * length + 32));
}

/** Widths stand in the address in the order of the columns; an empty one is the default. */
export function parseWidths(text: string): number[] {
  return text.split(",").map((each) => (/^\d{2,4}$/.test(each) ? Number(each) : 0));
}

const FAVOURITES = ["loss", "val_loss", "train_loss", "accuracy", "val_accuracy", "acc", "auc", "f1", "rmse", "mae"];

/** What is shown until somebody chooses: what a person asks of a run first, and up to two of the metrics. */
export function defaultColumns(metrics: readonly string[]): Column[] {
  const known = new Set(metrics);
  const favourites = FAVOURITES.filter((each) => known.has(each));
  // Among a thousand names none is the right one, unless it is a usual one.
  const chosen = (favourites.length ? favourites : metrics.length <= 20 ? metrics : []).slice(0, 2);
  const first = chosen[0];
  const specs = ["name", "status", "experiment", "created", "duration", "user"];
  if (first !== undefined) specs.push(formatField("line", first));
  specs.push(...chosen.map((each) => formatField("metric", each)));
  return specs.map(parseColumn);
}

/** Both conditions. Either may be empty. */
export function joinFilters(first: string, second: string): string {
  if (!first.trim() || !second.trim()) return first.trim() || second.trim();
  return `(${first}) and ${second}`;
}

/** A condition that holds for these runs. */
export function matchIds(ids: readonly string[]): string {
  return `id in (${ids.map(quote).join(", ")})`;
}

/** The order after a click on a header: ascending, descending, and newest first again. */
export function nextOrder(order: string, column: Column): string {
  if (order === column.spec) return `${column.spec} desc`;
  return order === `${column.spec} desc` ? "" : column.spec;
}

export function directionOf(order: string, column: Column): "ascending" | "descending" | "none" {
  if (order === column.spec) return "ascending";
  return order === `${column.spec} desc` ? "descending" : "none";
}
