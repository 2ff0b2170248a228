/** What stands in the cells of the table. Everything that comes from runs is text. */
import type { ComponentChildren, JSX } from "preact";
import { formatAddress } from "../../address";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { Duration } from "../../components/time";
import { formatAge, formatDate, formatDuration, formatNumber, toNumber } from "../../text/numbers";
import type { Column } from "./fields";
import type { Row } from "./run_list";
import { drawLine, LINE_HEIGHT, LINE_WIDTH } from "./sparkline";

export interface CellContext {
  workspace: string;
  now: number;
  lineOf: (runId: string, name: string) => readonly (number | null)[] | undefined;
}

export function nameOf(row: Row): string {
  return String(row["name"] || row.id);
}

const TIMES = new Set(["created", "started", "ended", "archived"]);

/** The content of a cell, and the whole text for those that are cut off. */
export function showCell(row: Row, column: Column, context: CellContext): { content: ComponentChildren; title?: string } {
  if (column.kind === "line") return { content: <Sparkline values={context.lineOf(row.id, column.name)} name={column.name} /> };
  const value = row[column.spec];
  if (column.kind === "column") {
    if (column.name === "name") return { content: <RunLink row={row} workspace={context.workspace} />, title: nameOf(row) };
    if (column.name === "status") return { content: <StatusMark status={String(value ?? "")} /> };
    if (column.name === "duration") return { content: <RunTime row={row} /> };
    if (TIMES.has(column.name)) return showTime(value, context.now);
    if (column.name === "tags") return showTags(value);
  }
  if (value === null || value === undefined) return { content: <span class="runs-absent">–</span> };
  if (column.kind === "metric") return { content: formatMetric(value), title: String(value) };
  if (typeof value === "number") return { content: formatNumber(value), title: String(value) };
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return { content: text, title: text };
}

function formatMetric(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : formatNumber(value);
}

export function RunLink({ row, workspace }: { row: Row; workspace: string }): JSX.Element {
  return <Link href={formatAddress(workspace, "runs", [row.id])}>{nameOf(row)}</Link>;
}

function RunTime({ row }: { row: Row }): JSX.Element | null {
  const from = toNumber(row["started"]);
  if (Number.isNaN(from)) return <span class="runs-absent">–</span>;
  if (row["ended"] === null || row["ended"] === undefined) return <Duration from={from} to={null} />;
  return <>{formatDuration(Math.max(0, toNumber(row["ended"]) - from))}</>;
}

function showTime(value: unknown, now: number): { content: ComponentChildren; title?: string } {
  const seconds = toNumber(value);
  if (Number.isNaN(seconds)) return { content: <span class="runs-absent">–</span> };
  return { content: <time dateTime={new Date(seconds * 1000).toISOString()}>{formatAge(seconds, now)}</time>, title: formatDate(seconds) };
}

function showTags(value: unknown): { content: ComponentChildren; title?: string } {
  const tags = Object.entries((value ?? {}) as Record<string, unknown>);
  const text = tags.map(([name, each]) => (each === null || each === "" ? name : `${name}: ${String(each)}`));
  return { content: <>{text.map((each, index) => <span key={tags[index]?.[0]} class="runs-tag">{each}</span>)}</>, title: text.join("\n") };
}

function Sparkline({ values, name }: { values: readonly (number | null)[] | undefined; name: string }): JSX.Element | null {
  if (!values?.length) return null;
  const known = values.filter((each) => each !== null);
  const label = `${name}: from ${formatNumber(known[0])} to ${formatNumber(known.at(-1))}`;
  return (
    <svg class="runs-sparkline" role="img" aria-label={label} viewBox={`0 0 ${LINE_WIDTH} ${LINE_HEIGHT}`} preserveAspectRatio="none">
      <path d={drawLine(values)} />
    </svg>
  );
}
