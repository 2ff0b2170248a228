/** The logs of a run as the page shows them: which there are, and a reader for each that is looked at. */
import { call } from "../../../api/client";
import { type Bounds, LogReader, type LogInfo, type RunAddress } from "./reader";

/** How many lines of all logs together are held. */
const MOST_LINES = 40_000;
const FEWEST_LINES = 4_000;
const MOST_BYTES = 16 * 1024 * 1024;
const OPENING_BYTES = 512 * 1024;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

export class LogModel {
  infos: LogInfo[] = [];
  isListed = false;
  /** What went wrong last; it is tried again. */
  error: unknown;
  /** Grows with every change. */
  version = 0;
  #readers = new Map<string, LogReader>();
  #chosen: string[] = [];
  #isRefreshing = false;
  #isWanted = false;
  #timer = 0;
  #pause = FIRST_PAUSE;
  #isClosed = false;

  constructor(
    readonly run: RunAddress,
    private readonly onChange: () => void,
  ) {}

  /** Looks for what is new. Calls while that is going on become one. */
  refresh = (): void => {
    if (this.#isClosed) return;
    if (this.#isRefreshing) {
      this.#isWanted = true;
      return;
    }
    this.#isRefreshing = true;
    clearTimeout(this.#timer);
    this.#refreshOnce()
      .then(
        () => {
          this.error = undefined;
          this.#pause = FIRST_PAUSE;
        },
        (error: unknown) => {
          // Nothing is lost: the next time continues where the lines here end.
          this.error = error;
          this.#timer = window.setTimeout(this.refresh, this.#pause);
          this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
        },
      )
      .then(() => {
        this.#isRefreshing = false;
        this.#tell();
        if (this.#isWanted) {
          this.#isWanted = false;
          this.refresh();
        }
      });
  };

  async #refreshOnce(): Promise<void> {
    const { logs } = await call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs", this.run);
    this.infos = (logs ?? []) as unknown as LogInfo[];
    this.isListed = true;
    const grown = new Set<LogReader>();
    for (const info of this.infos) {
      const reader = this.#readers.get(info.identity);
      if (!reader) continue;
      if (reader.isFollowed || reader.isAtEnd) grown.add(reader);
      reader.info = { ...info, size: Math.max(info.size, reader.info.size) };
    }
    await this.#readChosen(grown);
  }

  /** Reads what was added to the logs whose ends were here. */
  async #readChosen(grown: ReadonlySet<LogReader>): Promise<void> {
    await Promise.all(
      this.readers.map((reader) => {
        if (!reader.isOpen) return reader.open(Math.max(32 * 1024, Math.floor(OPENING_BYTES / this.#chosen.length)));
        const isWanted = grown.has(reader) && (reader.isFollowed || reader.hasRoom(this.most));
        return isWanted && !reader.isAtEnd ? reader.readLater(this.most, true) : undefined;
      }),
    );
  }

  /** Shows these logs; others are forgotten. */
  choose(infos: readonly LogInfo[]): void {
    const wanted = infos.map((each) => each.identity);
    if (wanted.join() === this.#chosen.join()) return;
    this.#chosen = wanted;
    const kept = new Map<string, LogReader>();
    for (const info of infos) kept.set(info.identity, this.#readers.get(info.identity) ?? new LogReader(this.run, info));
    this.#readers = kept;
    this.refresh();
  }

  get readers(): LogReader[] {
    return [...this.#readers.values()];
  }

  reader(identity: string): LogReader | undefined {
    return this.#readers.get(identity);
  }

  /** How much of one log is held. */
  get most(): Bounds {
    const share = Math.max(1, this.#chosen.length);
    return { lines: Math.max(FEWEST_LINES, Math.floor(MOST_LINES / share)), bytes: Math.floor(MOST_BYTES / share) };
  }

  /** Does something with readers, and shows what came of it. */
  async act(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.error = error;
      this.refresh();
    }
    this.#tell();
  }

  /** Reads more at the upper or lower end of a window. */
  extend(readers: readonly LogReader[], direction: "earlier" | "later"): Promise<void> {
    return this.act(() =>
      Promise.all(
        readers.map((each) => (direction === "earlier" ? each.readEarlier(this.most) : each.readLater(this.most, false))),
      ),
    );
  }

  /** Shows the ends of logs, and what is added to them. */
  goToEnd(readers: readonly LogReader[]): Promise<void> {
    return this.act(() =>
      Promise.all(
        readers.map(async (each) => {
          each.isFollowed = true;
          if (!each.isAtEnd) await each.open(Math.floor(OPENING_BYTES / readers.length));
        }),
      ),
    );
  }

  /** Shows the line at an offset. */
  async reveal(identity: string, offset: number, number?: number): Promise<void> {
    await this.act(async () => {
      const reader = this.#readers.get(identity);
      if (!reader) return;
      if (!reader.isOpen || reader.lines.find(offset) < 0) await reader.seek(offset, number);
      reader.isFollowed = false;
    });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #tell(): void {
    this.version += 1;
    if (!this.#isClosed) this.onChange();
  }
}
