/** The rows of one search that have been read so far, by their position. */

export type Row = Readonly<Record<string, unknown>> & { readonly id: string };

export const PAGE = 100;
/** More rows than this are dropped again, farthest from the view first. */
const MOST_KEPT = 20_000;

export interface Range {
  start: number;
  limit: number;
  /** Of the page before, if it was read: it does not move when runs are added. */
  cursor: string;
}

export class RunList {
  private rows: (Row | undefined)[] = [];
  private places: Map<string, number> | undefined = new Map();
  private readonly cursors = new Map<number, string>();
  private kept = 0;
  /** How many runs match; undefined until they were counted. */
  total: number | undefined;
  private isAllRead = false;

  /** How many rows the table has, as far as is known. */
  get length(): number {
    return this.isAllRead ? this.rows.length : Math.max(this.total ?? 0, this.rows.length);
  }

  get(index: number): Row | undefined {
    return this.rows[index];
  }

  has(id: string): boolean {
    return this.find(id) !== undefined;
  }

  find(id: string): number | undefined {
    if (!this.places) {
      this.places = new Map();
      this.rows.forEach((row, index) => row && this.places?.set(row.id, index));
    }
    return this.places.get(id);
  }

  /** The rows that were read, in order. */
  get known(): Row[] {
    return this.rows.filter((each) => each !== undefined);
  }

  /** The next page to read so that these rows can be shown; undefined if all of them are here. */
  findMissing(first: number, last: number): Range | undefined {
    for (let index = Math.max(0, first); index < Math.min(last, this.length); index += 1) {
      if (this.rows[index]) continue;
      // Behind rows that are here a page continues by its cursor; elsewhere it starts at a full page.
      const cursor = this.cursors.get(index) ?? "";
      const start = cursor ? index : this.rows[index - 1] ? index : index - (index % PAGE);
      return { start, limit: PAGE, cursor };
    }
    return undefined;
  }

  /** Add a page that was read from `start` on; `cursor` is that of the next one, empty after the last. */
  put(start: number, rows: readonly Row[], cursor: string): void {
    rows.forEach((row, offset) => this.set(start + offset, row));
    const end = start + rows.length;
    if (cursor) this.cursors.set(end, cursor);
    else {
      this.rows.length = end;
      this.total = end;
      this.isAllRead = true;
      this.places = undefined;
    }
  }

  private set(index: number, row: Row): void {
    if (!this.rows[index]) this.kept += 1;
    this.rows[index] = row;
    this.places?.set(row.id, index);
  }

  /** A row with new values in the place of the one it was. */
  update(row: Row): void {
    const index = this.find(row.id);
    if (index !== undefined) this.rows[index] = row;
  }

  /** Add a run where it belongs in a list that has the newest first. Its position, unless that is not read yet. */
  insertByAge(row: Row): number | undefined {
    const created = Number(row["created"]);
    let index = 0;
    while (index < this.rows.length && (this.rows[index] === undefined || Number(this.rows[index]?.["created"]) > created)) {
      index += 1;
    }
    if (index === this.rows.length && index < this.length) return undefined;
    this.rows.splice(index, 0, row);
    this.kept += 1;
    this.move(index, 1);
    return index;
  }

  /** Drop a run that no longer matches. Returns its former position. */
  remove(id: string): number | undefined {
    const index = this.find(id);
    if (index === undefined) return undefined;
    this.rows.splice(index, 1);
    this.kept -= 1;
    this.move(index, -1);
    return index;
  }

  private move(from: number, by: number): void {
    this.places = undefined;
    if (this.total !== undefined) this.total += by;
    const moved = [...this.cursors].map(([at, cursor]) => [at > from ? at + by : at, cursor] as const);
    this.cursors.clear();
    for (const [at, cursor] of moved) this.cursors.set(at, cursor);
  }

  /** Forget all rows but their number, to read them again when they are looked at. */
  forget(): void {
    const length = this.length;
    this.rows = [];
    this.cursors.clear();
    this.places = new Map();
    this.kept = 0;
    this.total = length;
    this.isAllRead = false;
  }

  /** Drop rows far from those in view, if there are very many. */
  trim(first: number, last: number): void {
    if (this.kept <= MOST_KEPT) return;
    const margin = MOST_KEPT / 4;
    for (let index = 0; index < this.rows.length; index += 1) {
      if (index >= first - margin && index < last + margin) continue;
      if (this.rows[index]) this.kept -= 1;
      this.rows[index] = undefined;
    }
    this.places = undefined;
    this.isAllRead = false;
  }
}
