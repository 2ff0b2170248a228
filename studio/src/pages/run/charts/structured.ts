/** What v1's log_confusion_matrix, log_accuracy_table, log_residuals and log_predictions keep, checked and brought into shape. Pure. */
export interface XyLine {
  label: string;
  xs: number[];
  ys: number[];
}

export type Structured =
  | { kind: "matrix"; labels: string[]; rows: number[][] }
  | { kind: "lines"; xLabel: string; yLabel: string; lines: XyLine[] }
  | { kind: "bars"; edges: number[]; counts: number[]; note: string }
  | { kind: "text"; text: string };

/** A value of unknown shape, from a file of the run. What does not fit its schema is shown as text. */
export function readStructured(text: string): Structured {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "text", text };
  }
  const data = isRecord(value) && isRecord(value["data"]) ? value["data"] : {};
  const schema = isRecord(value) ? value["schema_type"] : "";
  const read = typeof schema === "string" && Object.hasOwn(READERS, schema) ? READERS[schema] : undefined;
  return read?.(data) ?? { kind: "text", text: JSON.stringify(value, null, 2) };
}

type Reader = (data: Record<string, unknown>) => Structured | undefined;

const READERS: Readonly<Record<string, Reader>> = {
  confusion_matrix: readMatrix,
  accuracy_table: readAccuracy,
  residuals: readResiduals,
  predictions: readPredictions,
};

function readMatrix(data: Record<string, unknown>): Structured | undefined {
  const rows = readLists(data["matrix"]);
  if (!rows?.length) return undefined;
  const given = Array.isArray(data["class_labels"]) ? data["class_labels"] : [];
  return { kind: "matrix", labels: rows.map((_, n) => String(given[n] ?? n)), rows };
}

/** The receiver operating characteristic of each class, from its counts [true+, false+, true-, false-] by threshold. */
function readAccuracy(data: Record<string, unknown>): Structured | undefined {
  const tables = Array.isArray(data["probability_tables"]) ? data["probability_tables"].map(readLists) : [];
  const names = Array.isArray(data["class_labels"]) ? data["class_labels"] : Array.isArray(data["class_names"]) ? data["class_names"] : [];
  const lines = tables.flatMap((table, n) => {
    const points = (table ?? []).map(([tp = 0, fp = 0, tn = 0, fn = 0]) => [fp / (fp + tn || 1), tp / (tp + fn || 1)] as const);
    points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return points.length ? [{ label: String(names[n] ?? n), xs: points.map(([x]) => x), ys: points.map(([, y]) => y) }] : [];
  });
  return lines.length ? { kind: "lines", xLabel: "False positive rate", yLabel: "True positive rate", lines } : undefined;
}

function readResiduals(data: Record<string, unknown>): Structured | undefined {
  const edges = readNumbers(data["bin_edges"]);
  const counts = readNumbers(data["bin_counts"]);
  if (!edges || !counts?.length || edges.length < counts.length) return undefined;
  const [mean, deviation] = [data["mean"], data["stddev"]];
  const note = typeof mean === "number" && typeof deviation === "number" ? `mean ${round(mean)}, deviation ${round(deviation)}` : "";
  return { kind: "bars", edges, counts, note };
}

function readPredictions(data: Record<string, unknown>): Structured | undefined {
  const edges = readNumbers(data["bin_edges"]);
  const averages = readNumbers(data["bin_averages"]);
  if (!edges || !averages?.length || edges.length < averages.length) return undefined;
  const middles = averages.map((_, n) => ((edges[n] ?? 0) + (edges[n + 1] ?? edges[n] ?? 0)) / 2);
  const ideal = { label: "Ideal", xs: [...middles], ys: [...middles] };
  return {
    kind: "lines",
    xLabel: "True value",
    yLabel: "Predicted value",
    lines: [{ label: "Average prediction", xs: middles, ys: averages }, ideal],
  };
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readNumbers(value: unknown): number[] | undefined {
  return Array.isArray(value) && value.every((each) => typeof each === "number") ? (value as number[]) : undefined;
}

function readLists(value: unknown): number[][] | undefined {
  if (!Array.isArray(value)) return undefined;
  const lists = value.map(readNumbers);
  return lists.every((each) => each !== undefined) ? (lists as number[][]) : undefined;
}

export interface RowTable {
  columns: string[];
  rows: unknown[][];
  /** The columns in which every cell is a number, or missing. */
  numeric: string[];
}

/** Rows of a table metric as columns; a scalar among them is a row with one cell, named as the metric. */
export function readRows(name: string, values: readonly unknown[]): RowTable {
  const records = values.map((value) => (isRecord(value) ? value : { [name]: value }));
  const columns = [...new Set(records.flatMap((each) => Object.keys(each)))];
  const rows = records.map((record) => columns.map((column) => (Object.hasOwn(record, column) ? record[column] : undefined)));
  const numeric = columns.filter((_, n) => rows.every((row) => row[n] === undefined || row[n] === null || typeof row[n] === "number"));
  return { columns, rows, numeric };
}
