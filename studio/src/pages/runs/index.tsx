/** All runs of a workspace in a table. What it shows is in the address: filter, order, groups and columns. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { formatAddress, navigate, setParameters } from "../../address";
import { call } from "../../api/client";
import { useChanges } from "../../api/events";
import { useResource } from "../../api/resource";
import { ErrorBox, Loading, notify } from "../../components/feedback";
import { type Shortcut, useShortcuts } from "../../components/keyboard";
import type { PageProps } from "../page";
import { ColumnChooser } from "./column_chooser";
import { chooseDiffering } from "./differing";
import { FirstSteps, NothingFound } from "./empty";
import {
  type Column, defaultColumns, defaultWidth, fieldsOf, formatColumns, linesOf, parseColumns, parseWidths,
} from "./fields";
import { FilterBox, focusFilter } from "./filter_box";
import { countRuns } from "./removal_text";
import type { Row } from "./run_list";
import { RunTable } from "./run_table";
import { countItems, findItem, groupOfTag, type Section } from "./sections";
import { addressOfComparison, SelectionBar } from "./selection";
import { RunsTable } from "./table";
import { useMedia } from "./media";
import { ViewsDialog } from "./views";

const NO_NAMES = { arguments: [], metrics: [], tags: [], properties: [], is_all: true };
const MOST_NAMES = 2000;
const MOST_COMPARED = 200;
const MOST_SELECTED = 500;

export function RunsPage({ place, workspace }: PageProps): JSX.Element {
  const parameter = (name: string): string => place.query.get(name) ?? "";
  const filter = parameter("filter");
  const order = parameter("sort");
  const group = parameter("group");
  const open = place.query.get("open");
  const isDiffering = parameter("differ") === "1";
  const [, render] = useReducer((count: number) => count + 1, 0);
  const [selected, setSelected] = useState<ReadonlyMap<string, Row>>(new Map());
  const [current, setCurrent] = useState(-1);
  const [dialog, setDialog] = useState<"" | "columns" | "views">("");
  const [prefix, setPrefix] = useState("");
  const anchor = useRef(-1);
  const shift = useRef({ rows: 0 });
  const isNarrow = useMedia("(max-width: 700px)");
  const table = useMemo(() => new RunTable(() => render(undefined), (rows) => {
    shift.current.rows += rows;
    setCurrent((old) => (old < 0 ? old : old + rows));
  }), [workspace]);

  const fields = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/run-fields", { workspace, prefix, limit: MOST_NAMES }, { signal }),
    [workspace, prefix],
  );
  const names = fields.value ?? NO_NAMES;
  const chosen = useMemo(
    () => (place.query.get("cols") ? parseColumns(parameter("cols")) : defaultColumns(names.metrics)),
    [place.query.get("cols"), names.metrics.join("\n")],
  );
  const columns = useDiffering(workspace, chosen, table, selected, isDiffering);

  const wanted = formatColumns(columns);
  // Not after the next frame, as `useEffect` would.
  useLayoutEffect(() => {
    void table.show({
      workspace, filter, order, group,
      open: open === null ? undefined : new Set(JSON.parse(open || "[]") as string[]),
      children: parameter("children") === "1",
      archived: parameter("archived") === "1",
      fields: fieldsOf(columns),
      lines: linesOf(columns),
    });
  }, [table, filter, order, group, parameter("children"), parameter("archived"), wanted]);
  useEffect(() => () => table.stop(), [table]);
  useEffect(() => {
    setCurrent(-1);
    anchor.current = -1;
  }, [filter, order, group]);
  useChanges(workspace, (changes) => {
    table.note(changes);
    const hasNew = (changes.runs as { kinds: string[] }[]).some((each) => each.kinds.includes("metrics") || each.kinds.includes("created"));
    if (hasNew && !names.metrics.length) fields.reload();
  });

  const count = countItems(table.sections);
  const isEmpty = !table.isLoading && !table.error && count === 0;

  async function select(position: number, isRange: boolean): Promise<void> {
    const from = isRange && anchor.current >= 0 ? anchor.current : position;
    anchor.current = position;
    setCurrent(-1);
    const [first, last] = [Math.min(from, position), Math.max(from, position)];
    setSelected((old) => {
      const next = new Map(old);
      const isRemoved = first === last && hasSelected(old, table, first);
      for (let at = first; at <= last && next.size < MOST_SELECTED; at += 1) {
        const row = findItem(table.sections, at)?.row;
        if (!row) continue;
        if (isRemoved) next.delete(row.id);
        else next.set(row.id, row);
      }
      if (next.size >= MOST_SELECTED) notify(`At most ${MOST_SELECTED} runs can be selected.`);
      return next;
    });
  }

  function selectAll(): void {
    const known = table.sections.filter((each) => each.isOpen).flatMap((each) => each.list.known).slice(0, MOST_SELECTED);
    setSelected((old) => (old.size ? new Map() : new Map(known.map((row) => [row.id, row]))));
  }

  function toggleGroup(section: Section): void {
    table.toggle(section, !section.isOpen);
    const keys = table.sections.filter((each) => each.isOpen).map((each) => each.key);
    setParameters({ open: JSON.stringify(keys) });
  }

  function setColumns(next: readonly Column[]): void {
    const widths = next.map((each) => {
      const before = chosen.findIndex((old) => old.spec === each.spec);
      return (before >= 0 && parseWidths(parameter("widths"))[before]) || 0;
    });
    setParameters({ cols: formatColumns(next), widths: formatWidths(next, widths) });
  }

  function move(by: number): void {
    setCurrent((old) => Math.max(0, Math.min(count - 1, old < 0 ? (by > 0 ? 0 : count - 1) : old + by)));
  }

  const shortcuts: Shortcut[] = [
    { keys: ["/"], label: "Write a filter", run: focusFilter },
    { keys: ["j", "ArrowDown"], label: "Next run", run: () => move(1) },
    { keys: ["k", "ArrowUp"], label: "Previous run", run: () => move(-1) },
    { keys: ["g"], label: "First run", run: () => setCurrent(0) },
    { keys: ["G"], label: "Last run", run: () => setCurrent(count - 1) },
    {
      keys: ["Enter"],
      label: "Open the run",
      run: () => {
        const focused = document.activeElement;
        const isElsewhere = focused instanceof HTMLElement && focused.matches("a, button, summary") && !focused.closest(".runs-frame tbody");
        if (isElsewhere) return focused.click();
        const item = findItem(table.sections, current);
        if (item?.row) navigate(formatAddress(workspace, "runs", [item.row.id]));
        else if (item?.index === undefined && item) toggleGroup(item.section);
      },
    },
    {
      keys: ["x"],
      label: "Select the run",
      run: () => {
        if (current < 0) return;
        const at = current;
        void select(at, false).then(() => setCurrent(at));
      },
    },
    { keys: ["Escape"], label: "Select nothing", run: () => setSelected(new Map()) },
    {
      keys: ["c"],
      label: "Compare the selected runs",
      run: () => {
        if (selected.size > 1) navigate(addressOfComparison(workspace, [...selected.keys()]));
        else notify("Select at least two runs to compare.");
      },
    },
    { keys: ["v"], label: "Views", run: () => setDialog("views") },
    { keys: ["o"], label: "Columns", run: () => setDialog("columns") },
  ];
  useShortcuts("Runs", shortcuts);

  const filterError = table.error?.status === 400 ? table.error : undefined;
  const isFirst = isEmpty && !filter && !group && parameter("archived") !== "1";
  return (
    <section class="runs" aria-label="Runs">
      <div class="row runs-title">
        <h1>Runs</h1>
        <span class="muted" role="status">{describeCount(table)}</span>
        <span class="spacer" />
        {table.fresh > 0 && <button type="button" class="primary" onClick={() => table.reload()}>Show {table.fresh === 1 ? "1 new run" : `${table.fresh} new runs`}</button>}
        <button type="button" onClick={() => setDialog("views")}>Views</button>
        <button type="button" onClick={() => setDialog("columns")}>Columns</button>
      </div>
      <div class="row runs-tools">
        <FilterBox
          workspace={workspace}
          filter={filter}
          names={names}
          error={filterError}
          onFilter={(next, isDone) => setParameters({ filter: next }, { replace: !isDone })}
        />
        <label class="row">
          Group by
          <select value={group} onChange={(event) => setParameters({ group: event.currentTarget.value, open: undefined })}>
            <option value="">nothing</option>
            <option value="experiment">experiment</option>
            <optgroup label="Tags">
              {names.tags.slice(0, 200).map((each) => <option key={each} value={groupOfTag(each)}>{each}</option>)}
            </optgroup>
          </select>
        </label>
        <Toggle name="differ" value={parameter("differ")} label="Only columns that differ" />
        <Toggle name="children" value={parameter("children")} label="Child runs" />
        <Toggle name="archived" value={parameter("archived")} label="Archived" />
      </div>
      {table.error && !filterError && <ErrorBox error={table.error} onRetry={() => table.reload()} />}
      {isFirst ? (
        <FirstSteps workspace={workspace} />
      ) : isEmpty ? (
        <NothingFound onReset={() => navigate(location.pathname)} />
      ) : count === 0 && !filterError ? (
        !table.error && <Loading />
      ) : (
        <RunsTable
          table={table}
          workspace={workspace}
          columns={columns}
          widths={isDiffering ? [] : parseWidths(parameter("widths"))}
          order={order}
          isNarrow={isNarrow}
          selected={selected}
          current={current}
          shift={shift.current}
          onOrder={(next) => setParameters({ sort: next })}
          onWidths={(next) => setParameters({ widths: formatWidths(columns, next), cols: formatColumns(columns) })}
          onSelect={(position, isRange) => void select(position, isRange)}
          onSelectAll={selectAll}
          onToggleGroup={toggleGroup}
          onFocus={setCurrent}
        />
      )}
      {selected.size > 0 && (
        <SelectionBar
          workspace={workspace}
          selected={selected}
          tagNames={names.tags}
          isArchive={[...selected.values()].every((row) => row["archived"] !== null && row["archived"] !== undefined)}
          onClear={() => setSelected(new Map())}
          onDone={() => fields.reload()}
        />
      )}
      {dialog === "columns" && (
        <ColumnChooser
          columns={chosen}
          names={names}
          isAll={names.is_all}
          onChange={setColumns}
          onSearch={setPrefix}
          onReset={() => setParameters({ cols: undefined, widths: undefined })}
          onClose={() => setDialog("")}
        />
      )}
      {dialog === "views" && <ViewsDialog workspace={workspace} onClose={() => setDialog("")} />}
    </section>
  );
}

function hasSelected(selected: ReadonlyMap<string, Row>, table: RunTable, position: number): boolean {
  const row = findItem(table.sections, position)?.row;
  return !!row && selected.has(row.id);
}

/** Only widths that somebody has chosen stand in the address. */
function formatWidths(columns: readonly Column[], widths: readonly number[]): string {
  const chosen = columns.map((each, index) => (widths[index] && widths[index] !== defaultWidth(each) ? String(widths[index]) : ""));
  return chosen.some(Boolean) ? chosen.join(",") : "";
}

function describeCount(table: RunTable): string {
  if (table.sections.length !== 1 || table.sections[0]?.key) {
    const groups = table.sections.filter((each) => each.list.total !== 0).length;
    return table.sections.length ? `${groups.toLocaleString("en")} ${groups === 1 ? "group" : "groups"}` : "";
  }
  const total = table.sections[0]?.list.total;
  return total === undefined ? "" : countRuns(total);
}

/** With "only columns that differ": the columns in which the runs shown, or those selected, are not all the same. */
function useDiffering(
  workspace: string, chosen: Column[], table: RunTable, selected: ReadonlyMap<string, Row>, isWanted: boolean,
): Column[] {
  const shown = useRef<Row[]>([]);
  if (selected.size > 1) shown.current = [...selected.values()];
  else if (!table.isLoading) shown.current = table.sections.flatMap((each) => each.list.known).slice(0, MOST_COMPARED);
  const rows = shown.current;
  const ids = isWanted ? rows.map((each) => each.id) : [];
  const found = useResource(
    async (signal) => {
      if (!ids.length) return undefined;
      const names = await call("POST /api/v1/workspaces/{workspace}/run-fields/differing", { workspace, run_ids: ids }, { signal });
      return { names, rows };
    },
    [workspace, ids.join("\n")],
  );
  const { value } = found;
  // The same columns as long as they are written alike, so that nothing is read again for them.
  const text = value ? formatColumns(chooseDiffering(chosen, value.names, value.rows)) : "";
  return useMemo(() => (isWanted && text ? parseColumns(text) : chosen), [isWanted, text, chosen]);
}

function Toggle({ name, value, label }: { name: string; value: string; label: string }): JSX.Element {
  return (
    <label class="row runs-toggle">
      <input type="checkbox" checked={value === "1"} onChange={(event) => setParameters({ [name]: event.currentTarget.checked ? "1" : "" })} />
      {label}
    </label>
  );
}
