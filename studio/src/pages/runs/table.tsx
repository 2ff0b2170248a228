/** The table: only the rows in view are drawn, in a real table that says how long it is. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { StatusMark } from "../../components/status";
import { useNow } from "../../components/time";
import { findWindow, scrollTo, useScroll } from "../../components/window";
import { formatAge, formatNumber, toNumber } from "../../text/numbers";
import { type CellContext, nameOf, RunLink, showCell } from "./cells";
import { type Column, defaultWidth, describeColumn, directionOf, isNumeric, isSortable, nextOrder } from "./fields";
import type { Row } from "./run_list";
import type { RunTable } from "./run_table";
import { countItems, findItem, type Item, type Section } from "./sections";

const ROW = 34;
const CARD = 68;
const CHECKBOX = 36;
const NARROWEST = 60;

export interface TableProps {
  table: RunTable;
  workspace: string;
  columns: readonly Column[];
  widths: readonly number[];
  order: string;
  isNarrow: boolean;
  selected: ReadonlyMap<string, Row>;
  /** The row that the keys move, by position; -1 for none. */
  current: number;
  shift: { rows: number };
  onOrder: (order: string) => void;
  onWidths: (widths: readonly number[]) => void;
  onSelect: (position: number, isRange: boolean) => void;
  onSelectAll: () => void;
  onToggleGroup: (section: Section) => void;
  onFocus: (position: number) => void;
}

export function RunsTable(props: TableProps): JSX.Element {
  const { table, columns, isNarrow, current, shift } = props;
  const frame = useRef<HTMLDivElement>(null);
  const size = useScroll(frame);
  const [drag, setDrag] = useState<readonly number[] | undefined>(undefined);
  const now = useNow(15);
  const rowHeight = isNarrow ? CARD : ROW;
  const header = isNarrow ? 0 : ROW;
  const count = countItems(table.sections);
  const view = findWindow(size.scroll, size.height - header, count, rowHeight);

  useEffect(() => table.look(view.first, view.last), [table, view.first, view.last, count, table.sections]);
  useLayoutEffect(() => {
    // Rows that were added above those in view must not move them.
    if (shift.rows && frame.current) frame.current.scrollTop += shift.rows * rowHeight;
    shift.rows = 0;
  });
  useEffect(() => {
    const element = frame.current;
    if (current < 0 || !element) return;
    element.scrollTop = scrollTo(current, element.scrollTop, element.clientHeight - header, count, rowHeight);
  }, [current]);
  const chosen = current >= view.first && current < view.last ? findItem(table.sections, current) : undefined;
  const isDrawn = !!chosen && (chosen.index === undefined || !!chosen.row);
  useEffect(() => {
    const element = frame.current;
    // Somebody who writes a filter in the meantime keeps the focus.
    const isFree = document.activeElement === document.body || element?.contains(document.activeElement);
    if (isDrawn && isFree) element?.querySelector<HTMLElement>(`[data-position="${current}"] :is(a, .runs-group-button)`)?.focus({ preventScroll: true });
  }, [current, isDrawn]);

  const widths = columns.map((each, index) => drag?.[index] || props.widths[index] || defaultWidth(each));
  const context: CellContext = { workspace: props.workspace, now, lineOf: (id, name) => table.lineOf(id, name) };
  const span = isNarrow ? 2 : columns.length + 1;
  const positions = Array.from({ length: view.last - view.first }, (_, index) => view.first + index);
  return (
    <div class={table.isLoading ? "runs-frame is-loading" : "runs-frame"} ref={frame} role="region" aria-label="Table of runs" tabIndex={0}>
      <table
        class={isNarrow ? "runs-table runs-cards" : "runs-table"}
        aria-rowcount={count + 1}
        aria-busy={table.isLoading}
        style={isNarrow ? {} : { minWidth: `${widths.reduce((sum, each) => sum + each, CHECKBOX)}px` }}
      >
        {!isNarrow && <Columns columns={columns} widths={widths} />}
        <thead>
          {isNarrow ? (
            <tr aria-rowindex={1}>
              <th class="runs-check" scope="col"><span class="hidden-label">Selected</span></th>
              <th scope="col"><span class="hidden-label">Run</span></th>
            </tr>
          ) : (
            <Header {...props} widths={widths} onDrag={setDrag} />
          )}
        </thead>
        <tbody>
          <tr class="runs-filler" aria-hidden="true"><td colSpan={span} style={{ height: `${view.above}px` }} /></tr>
          {positions.map((position) => (
            <TableRow
              key={position}
              {...props}
              position={position}
              item={findItem(table.sections, position)}
              context={context}
              span={span}
            />
          ))}
          <tr class="runs-filler" aria-hidden="true"><td colSpan={span} style={{ height: `${view.below}px` }} /></tr>
        </tbody>
      </table>
    </div>
  );
}

/** The name takes the width that is left. */
function Columns({ columns, widths }: { columns: readonly Column[]; widths: readonly number[] }): JSX.Element {
  const flexible = Math.max(0, columns.findIndex((each) => each.spec === "name"));
  return (
    <colgroup>
      <col style={{ width: `${CHECKBOX}px` }} />
      {columns.map((each, index) => <col key={each.spec} style={index === flexible ? {} : { width: `${widths[index]}px` }} />)}
    </colgroup>
  );
}

type HeaderProps = TableProps & { onDrag: (widths: readonly number[] | undefined) => void };

function Header({ table, columns, widths, order, selected, onOrder, onWidths, onDrag, onSelectAll }: HeaderProps): JSX.Element {
  function startDrag(event: PointerEvent, handle: HTMLElement, index: number): void {
    const from = event.clientX;
    const width = handle.parentElement?.getBoundingClientRect().width ?? 100;
    let next = [...widths];
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => {
      next = widths.map((each, at) => (at === index ? Math.round(Math.max(NARROWEST, width + moved.clientX - from)) : each));
      onDrag(next);
    };
    handle.onpointerup = () => {
      handle.onpointermove = handle.onpointerup = null;
      onWidths(next);
      onDrag(undefined);
    };
    event.preventDefault();
  }
  const first = table.sections.find((each) => each.list.get(0))?.list.get(0);
  const known = table.sections.reduce((sum, each) => sum + (each.isOpen ? each.list.length : 0), 0);
  return (
    <tr aria-rowindex={1}>
      <th class="runs-check" scope="col">
        <input
          type="checkbox"
          aria-label="Select all loaded runs"
          checked={selected.size > 0}
          ref={(element) => {
            if (element) element.indeterminate = selected.size > 0 && selected.size < known;
          }}
          onChange={onSelectAll}
        />
      </th>
      {columns.map((column, index) => {
        const { label, note } = describeColumn(column);
        const direction = directionOf(order, column);
        const text = (
          <>
            <span class="runs-column-label">{label}</span>
            {note && <span class="runs-column-note">{note}</span>}
          </>
        );
        return (
          <th key={column.spec} scope="col" class={valueClass(column, first)} aria-sort={direction} title={column.spec}>
            {isSortable(column) ? (
              <button type="button" class="runs-sort" onClick={() => onOrder(nextOrder(order, column))}>
                {text}
                <span aria-hidden="true" class="runs-direction">{direction === "ascending" ? "▲" : direction === "descending" ? "▼" : ""}</span>
              </button>
            ) : (
              <span class="runs-sort">{text}</span>
            )}
            <span
              class="runs-resize"
              aria-hidden="true"
              onPointerDown={(event) => startDrag(event, event.currentTarget, index)}
              onDblClick={() => onWidths(widths.map((each, at) => (at === index ? defaultWidth(column) : each)))}
            />
          </th>
        );
      })}
    </tr>
  );
}

function classOf(column: Column): string {
  if (column.spec === "name") return "name";
  return isNumeric(column) ? "number" : "";
}

type RowProps = TableProps & { item: Item | undefined; position: number; context: CellContext; span: number };

function TableRow(props: RowProps): JSX.Element | null {
  const { item, position, context, columns, selected, current, span, isNarrow, onSelect, onFocus } = props;
  if (!item) return null;
  if (item.index === undefined) return <GroupRow {...props} section={item.section} />;
  const { row } = item;
  if (!row) {
    return (
      <tr aria-rowindex={position + 2} class="runs-unread">
        <td class="runs-check" />
        <td colSpan={span - 1}><span class="hidden-label">Loading</span></td>
      </tr>
    );
  }
  const isSelected = selected.has(row.id);
  return (
    <tr
      aria-rowindex={position + 2}
      aria-selected={isSelected}
      data-position={position}
      class={`${isSelected ? "is-selected" : ""} ${position === current ? "is-current" : ""}`}
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest("a, input, button")) return;
        // A marked text is meant to be copied.
        if (!event.shiftKey && String(getSelection())) return;
        onSelect(position, event.shiftKey);
      }}
      onFocusIn={(event) => {
        // With the tab key the focus moves by itself.
        if (event.target instanceof HTMLAnchorElement && position !== current) onFocus(position);
      }}
      onMouseDown={(event) => {
        if (event.shiftKey) event.preventDefault();
      }}
    >
      <td class="runs-check">
        <input
          type="checkbox"
          aria-label={`Select ${nameOf(row)}`}
          checked={isSelected}
          onClick={(event) => {
            onSelect(position, event.shiftKey);
          }}
        />
      </td>
      {isNarrow ? <Card row={row} columns={columns} context={context} /> : columns.map((column) => {
        const { content, title } = showCell(row, column, context);
        return <td key={column.spec} class={valueClass(column, row)} title={title}>{content}</td>;
      })}
    </tr>
  );
}

/** Numbers stand at the right, also those of arguments. */
function valueClass(column: Column, row: Row | undefined): string {
  return column.kind === "argument" && typeof row?.[column.spec] === "number" ? "number" : classOf(column);
}

function Card({ row, columns, context }: { row: Row; columns: readonly Column[]; context: CellContext }): JSX.Element {
  const metric = columns.find((each) => each.kind === "metric" && row[each.spec] !== null && row[each.spec] !== undefined);
  return (
    <td class="runs-card-cell">
      <div class="runs-card-line">
        <RunLink row={row} workspace={context.workspace} />
        <StatusMark status={String(row["status"] ?? "")} />
      </div>
      <div class="runs-card-line muted small">
        <span class="runs-card-text">{String(row["experiment"] ?? "")}</span>
        {metric && <span class="runs-card-value">{`${describeColumn(metric).label} ${formatNumber(row[metric.spec])}`}</span>}
        <span>{formatAge(toNumber(row["created"]), context.now)}</span>
      </div>
    </td>
  );
}

function GroupRow({ section, position, current, span, onToggleGroup }: RowProps & { section: Section }): JSX.Element {
  const { total } = section.list;
  return (
    <tr aria-rowindex={position + 2} class={position === current ? "runs-group is-current" : "runs-group"} data-position={position}>
      <th scope="rowgroup" colSpan={span}>
        <button type="button" class="runs-group-button" aria-expanded={section.isOpen} onClick={() => onToggleGroup(section)}>
          <span aria-hidden="true">{section.isOpen ? "▾" : "▸"}</span>
          <span class="runs-group-title">{section.title || "(empty)"}</span>
          <span class="muted">{total === undefined ? "…" : total.toLocaleString("en")}</span>
        </button>
      </th>
    </tr>
  );
}
