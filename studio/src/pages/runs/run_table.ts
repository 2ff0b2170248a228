/** The runs that the table shows: read as far as they are looked at, and kept up to date. No DOM. */
import { ApiError, call } from "../../api/client";
import type { Changes } from "../../api/events";
import { joinFilters, matchIds } from "./fields";
import type { Range, Row } from "./run_list";
import { RunList } from "./run_list";
import { findRanges, makeSections, type Section } from "./sections";

export interface Query {
  workspace: string;
  filter: string;
  order: string;
  /** The field whose values are groups; empty for none. */
  group: string;
  /** The groups that are open; undefined: the first with runs. */
  open: ReadonlySet<string> | undefined;
  children: boolean;
  archived: boolean;
  /** Fields to read of every run. */
  fields: readonly string[];
  /** Metrics with small charts. */
  lines: readonly string[];
}

type Line = readonly (number | null)[];

const MOST_GROUPS = 1000;
const MOST_TRIED = 10;
const MOST_AT_ONCE = 3;
/** Values in one condition; the language allows 10,000 characters. */
const CHUNK = 80;
const MOST_CHANGES = 400;
const PAUSE = 120;
const LINE_POINTS = 40;
const MOST_LINES = 5000;
const WITH_METRICS = /metric/i;

interface RunChange {
  id: string;
  kinds: readonly string[];
}

export class RunTable {
  sections: Section[] = [];
  error: ApiError | undefined;
  /** Whether the rows shown are not yet those of the query. */
  isLoading = true;
  /** Runs that were added where the order of the table does not say where they belong. */
  fresh = 0;
  private query: Query | undefined;
  /** The search whose rows are in `sections`; while another one is read, they are still those of the search before. */
  private shown = "";
  private controller = new AbortController();
  private view = { first: 0, last: 60 };
  private readonly reading = new Set<string>();
  private readonly stale = new Set<Section>();
  private readonly changed = new Map<string, Set<string>>();
  private readonly lines = new Map<string, Map<string, Line>>();
  private readonly oldLines = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isReadingChanges = false;
  /** Whether something may have changed while the rows were being read. */
  private isOutdated = false;

  /** `onShift` is told how many rows were added above those in view, so that these can stay where they are. */
  constructor(
    private readonly onChange: () => void,
    private readonly onShift: (rows: number) => void,
  ) {}

  /** Show another search, or other columns of the same. What is shown stays until the first rows are there. */
  async show(query: Query): Promise<void> {
    const search = searchOf(query);
    const isSameSearch = this.shown === search && !this.error;
    this.query = query;
    this.controller.abort();
    const controller = new AbortController();
    this.controller = controller;
    this.reading.clear();
    this.isLoading = true;
    this.onChange();
    try {
      const next = await this.makeNext(query, isSameSearch, controller.signal);
      if (controller.signal.aborted) return;
      // Somebody may have opened or closed a group meanwhile.
      const held = new Map(isSameSearch ? this.sections.map((each) => [each.key, each.isOpen]) : []);
      for (const each of next) each.isOpen = held.get(each.key) ?? each.isOpen;
      this.sections = next;
      this.shown = search;
      this.stale.clear();
      this.error = undefined;
      this.fresh = 0;
      if (!isSameSearch) this.changed.clear();
    } catch (error) {
      if (controller.signal.aborted) return;
      this.error = error instanceof ApiError ? error : new ApiError(0, "the runs cannot be shown", String(error));
    }
    this.isLoading = false;
    this.onChange();
    if (this.isOutdated) this.reload();
    else this.pump();
  }

  /** Read what is shown again. */
  reload(): void {
    this.isOutdated = false;
    if (this.query) void this.show({ ...this.query });
  }

  stop(): void {
    this.controller.abort();
    clearTimeout(this.timer);
  }

  private async makeNext(query: Query, isSameSearch: boolean, signal: AbortSignal): Promise<Section[]> {
    const isKept = isSameSearch && this.sections.length > 0;
    const values = query.group && !isKept ? await this.listGroups(query, signal) : [];
    const next = isKept
      ? this.sections.map((each) => ({ ...each, list: withTotal(each.list.total) }))
      : makeSections(query.filter, query.group, values, query.open);
    if (query.group && !query.open && !isKept) {
      await this.openFirst(query, next, signal);
      return next;
    }
    const range = isKept ? this.view : { first: 0, last: 60 };
    const wanted = findRanges(next, range.first, range.last).filter((each) => each.section.isOpen);
    await Promise.all(
      wanted.slice(0, MOST_AT_ONCE).map(async ({ section, first, last }) => {
        const missing = section.list.findMissing(first, last) ?? { start: 0, limit: 100, cursor: "" };
        await this.readPage(query, section, missing, signal);
      }),
    );
    return next;
  }

  /** Opens the first group in which something matches. */
  private async openFirst(query: Query, sections: readonly Section[], signal: AbortSignal): Promise<void> {
    for (const section of sections.slice(0, MOST_TRIED)) {
      await this.readPage(query, section, { start: 0, limit: 100, cursor: "" }, signal);
      if (section.list.length) {
        section.isOpen = true;
        return;
      }
    }
  }

  private async listGroups(query: Query, signal: AbortSignal): Promise<string[]> {
    const { values } = await call(
      "GET /api/v1/workspaces/{workspace}/run-fields/values",
      { workspace: query.workspace, field: query.group, limit: MOST_GROUPS },
      { signal },
    );
    return values;
  }

  private async readPage(query: Query, section: Section, range: Range, signal: AbortSignal): Promise<void> {
    const page = await call(
      "GET /api/v1/workspaces/{workspace}/runs",
      {
        ...this.searchIn(query, section.filter),
        columns: [...query.fields],
        limit: range.limit,
        ...(range.cursor ? { cursor: range.cursor } : range.start ? { skip: range.start } : {}),
      },
      { signal },
    );
    if (!signal.aborted) section.list.put(range.start, page.rows as Row[], page.cursor);
  }

  private searchIn(query: Query, filter: string) {
    return {
      workspace: query.workspace,
      ...(filter ? { filter } : {}),
      ...(query.order ? { order: query.order } : {}),
      ...(query.children ? { children: true } : {}),
      ...(query.archived ? { archived: true } : {}),
    };
  }

  /** Say which rows are in view. */
  look(first: number, last: number): void {
    this.view = { first, last };
    this.pump();
  }

  /** Open or close a group. */
  toggle(section: Section, isOpen: boolean): void {
    section.isOpen = isOpen;
    this.onChange();
    this.pump();
  }

  /** Read what is in view and missing: rows, numbers of runs, small charts. */
  private pump(): void {
    const query = this.query;
    if (!query || this.isLoading) return;
    for (const { section, first, last } of findRanges(this.sections, this.view.first, this.view.last)) {
      section.list.trim(first, last);
      if (section.list.total === undefined || this.stale.has(section)) {
        this.start(`count ${section.key}`, (signal) => this.count(query, section, signal));
      }
      if (!section.isOpen) continue;
      const isUnread = section.list.length === 0 && section.list.total !== 0;
      const missing = section.list.findMissing(first, last) ?? (isUnread ? { start: 0, limit: 100, cursor: "" } : undefined);
      if (missing) this.start(`rows ${section.key} ${missing.start}`, (signal) => this.readPage(query, section, missing, signal));
      const ahead = section.list.findMissing(last, last + 50);
      if (!missing && ahead) this.start(`rows ${section.key} ${ahead.start}`, (signal) => this.readPage(query, section, ahead, signal));
      if (query.lines.length) this.readLinesInView(query, section, first, last);
    }
  }

  private start(name: string, read: (signal: AbortSignal) => Promise<void>): void {
    if (this.reading.has(name) || this.reading.size >= 2 * MOST_AT_ONCE) return;
    this.reading.add(name);
    const { signal } = this.controller;
    const finish = (): void => {
      if (signal.aborted) return;
      this.reading.delete(name);
      this.onChange();
      this.pump();
    };
    read(signal).then(finish, (error: unknown) => {
      if (signal.aborted) return;
      // Not again at once: the next change or movement tries it.
      this.reading.delete(name);
      if (error instanceof ApiError && error.status) this.error = error;
      this.onChange();
    });
  }

  private async count(query: Query, section: Section, signal: AbortSignal): Promise<void> {
    this.stale.delete(section);
    const page = await call(
      "GET /api/v1/workspaces/{workspace}/runs",
      { ...this.searchIn({ ...query, order: "" }, section.filter), columns: ["id"], limit: 1, total: true },
      { signal },
    );
    section.list.total = page.total ?? undefined;
  }

  // Small charts

  lineOf(runId: string, name: string): Line | undefined {
    return this.lines.get(runId)?.get(name);
  }

  private readLinesInView(query: Query, section: Section, first: number, last: number): void {
    const ids: string[] = [];
    for (let index = first; index < Math.min(last, section.list.length) && ids.length < 100; index += 1) {
      const id = section.list.get(index)?.id;
      if (id === undefined) continue;
      const held = this.lines.get(id);
      if (this.oldLines.has(id) || !held || query.lines.some((each) => !held.has(each))) ids.push(id);
    }
    if (ids.length) this.start("lines", (signal) => this.readLines(query, ids, signal));
  }

  private async readLines(query: Query, ids: string[], signal: AbortSignal): Promise<void> {
    for (const id of ids) this.oldLines.delete(id);
    const { sparklines } = await call(
      "POST /api/v1/workspaces/{workspace}/sparklines",
      { workspace: query.workspace, run_ids: ids, names: [...query.lines], points: LINE_POINTS },
      { signal },
    );
    if (this.lines.size > MOST_LINES) this.lines.clear();
    for (const id of ids) this.lines.set(id, new Map(query.lines.map((name) => [name, []])));
    for (const each of sparklines) this.lines.get(each.run_id)?.set(each.name, each.values);
  }

  // Changes

  /** Take in what the feed of changes says. Only runs that changed are read again. */
  note(changes: Changes): void {
    // The feed begins, possibly after the first rows were read; or it has a gap.
    if (!changes.whole) return this.isLoading ? void (this.isOutdated = true) : this.reload();
    for (const { id, kinds } of changes.runs as RunChange[]) {
      const held = this.changed.get(id) ?? new Set();
      for (const kind of kinds) held.add(kind);
      this.changed.set(id, held);
    }
    this.schedule();
  }

  private schedule(): void {
    if (this.timer !== undefined || this.isReadingChanges) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.readChanges();
    }, PAUSE);
  }

  private async readChanges(): Promise<void> {
    const query = this.query;
    if (!query || !this.sections.length || this.isLoading) return this.changed.size ? this.schedule() : undefined;
    const changed = new Map(this.changed);
    this.changed.clear();
    if (changed.size > MOST_CHANGES) return this.reload();
    this.isReadingChanges = true;
    const { signal } = this.controller;
    try {
      if (query.group && [...changed.values()].some((kinds) => isOfGroups(kinds))) await this.updateGroups(query, signal);
      for (const section of this.sections) {
        if (section.isOpen) await this.updateSection(query, section, changed, signal);
        else if ([...changed.values()].some((kinds) => isOfGroups(kinds))) this.stale.add(section);
      }
      for (const [id, kinds] of changed) if (kinds.has("metrics")) this.oldLines.add(id);
    } catch {
      // Without a connection the feed starts again with `whole` false, and everything is read.
    } finally {
      this.isReadingChanges = false;
      if (!signal.aborted) {
        this.onChange();
        this.pump();
      }
      if (this.changed.size) this.schedule();
    }
  }

  private async updateSection(query: Query, section: Section, changed: ReadonlyMap<string, ReadonlySet<string>>, signal: AbortSignal): Promise<void> {
    const ids = [...changed].filter(([id, kinds]) => section.list.has(id) || this.mayAppear(query, kinds)).map(([id]) => id);
    let above = 0;
    for (let start = 0; start < ids.length; start += CHUNK) {
      const chunk = ids.slice(start, start + CHUNK);
      const search = this.searchIn({ ...query, order: "" }, joinFilters(section.filter, matchIds(chunk)));
      const { rows } = await call(
        "GET /api/v1/workspaces/{workspace}/runs",
        { ...search, columns: [...query.fields], limit: chunk.length },
        { signal },
      );
      const found = new Map((rows as Row[]).map((row) => [row.id, row]));
      for (const id of chunk) above += this.apply(query, section, id, found.get(id), changed.get(id));
    }
    if (above) this.onShift(above);
  }

  private mayAppear(query: Query, kinds: ReadonlySet<string>): boolean {
    const isOnlyMetrics = kinds.size === 1 && kinds.has("metrics");
    return !isOnlyMetrics || WITH_METRICS.test(query.filter);
  }

  /** Returns how many rows were added above those in view. */
  private apply(query: Query, section: Section, id: string, row: Row | undefined, kinds: ReadonlySet<string> | undefined): number {
    const { list } = section;
    const first = findRanges(this.sections, this.view.first, this.view.last).find((each) => each.section === section)?.first ?? 0;
    if (!row) {
      const removed = list.remove(id);
      if (removed !== undefined) this.stale.add(section);
      return removed !== undefined && removed < first ? -1 : 0;
    }
    if (list.has(id)) {
      list.update(row);
      return 0;
    }
    if (query.order) {
      if (kinds?.has("created")) this.fresh += 1;
      return 0;
    }
    const place = list.insertByAge(row);
    this.stale.add(section);
    return place !== undefined && place <= first && first > 0 ? 1 : 0;
  }

  private async updateGroups(query: Query, signal: AbortSignal): Promise<void> {
    const values = await this.listGroups(query, signal);
    if (signal.aborted) return;
    const held = new Map(this.sections.map((each) => [each.key, each]));
    this.sections = makeSections(query.filter, query.group, values, query.open).map((each) => held.get(each.key) ?? each);
  }
}

function isOfGroups(kinds: ReadonlySet<string>): boolean {
  return kinds.has("created") || kinds.has("labels") || kinds.has("deleted");
}

function searchOf(query: Query): string {
  return JSON.stringify([query.workspace, query.filter, query.order, query.group, query.children, query.archived]);
}

function withTotal(total: number | undefined): RunList {
  const list = new RunList();
  list.total = total;
  return list;
}
