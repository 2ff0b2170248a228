/** Reads a window of one log: at its end, around a line, further up, further down. */
import { addressOf, request } from "../../../api/client";
import { LogLines } from "./lines";

export interface LogInfo {
  /** Changes when a failed attempt is followed by another. */
  name: string;
  /** Stays, whatever the log is called. */
  identity: string;
  size: number;
  /** Null for a log of the system. */
  rank: number | null;
  /** The failed attempt it belongs to; null for the current one. */
  attempt: number | null;
}

export interface RunAddress {
  workspace: string;
  run_id: string;
}

const CHUNK = 256 * 1024;
/** Whoever follows a log that grows faster than it is read gets its end. */
const MOST_BEHIND = 4 * 1024 * 1024;

/** How much of a log is held. */
export interface Bounds {
  readonly lines: number;
  readonly bytes: number;
}

export class LogReader {
  lines = new LogLines(0, false);
  isOpen = false;
  /** Whether its end is on the screen: then new lines replace old ones. */
  isFollowed = true;
  /** When its first bytes were read here, and when it last grew: see `times.ts`. */
  openedAt = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly run: RunAddress,
    public info: LogInfo,
  ) {}

  /** Whether there is room for more without forgetting what is looked at. */
  hasRoom(most: Bounds): boolean {
    return this.lines.lines.length < most.lines / 2 && this.lines.end - this.lines.start < most.bytes / 2;
  }

  get isAtEnd(): boolean {
    return this.lines.end >= this.info.size;
  }

  /** All of the log is here. */
  get isWhole(): boolean {
    return this.lines.start === 0 && this.isAtEnd;
  }

  /** One after the other: a range is read from where the one before has ended. */
  #take<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work, work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** Shows the end of the log. */
  open(bytes: number): Promise<void> {
    return this.#take(() => this.#openAtEnd(bytes));
  }

  async #openAtEnd(bytes: number): Promise<void> {
    const start = Math.max(0, this.info.size - bytes);
    const lines = new LogLines(start, true);
    lines.append(await this.#read(start, Math.max(bytes, this.info.size - start)));
    this.lines = lines;
    this.isOpen = true;
    this.openedAt = Date.now() / 1000;
  }

  /** Shows the lines around an offset. `number` is that of the line there, if it is known. */
  seek(offset: number, number?: number): Promise<void> {
    return this.#take(async () => {
      const start = Math.max(0, Math.min(offset, this.info.size) - CHUNK / 2);
      const lines = new LogLines(start, true);
      lines.append(await this.#read(start, CHUNK));
      const place = lines.find(offset);
      if (number !== undefined && place >= 0 && lines.lines[place]?.offset === offset) lines.firstNumber = number - place;
      this.lines = lines;
      this.isOpen = true;
      this.isFollowed = false;
    });
  }

  /** Reads what is above the window; what is too much is forgotten below. Returns whether there was something. */
  readEarlier(most: Bounds): Promise<boolean> {
    return this.#take(async () => {
      const { start } = this.lines;
      if (start === 0) return false;
      const from = Math.max(0, start - CHUNK);
      const data = await this.#read(from, start - from);
      if (data.length < start - from) return false;
      this.lines.prepend(data);
      this.lines.dropLast(most.lines, most.bytes);
      return true;
    });
  }

  /** Reads what is below the window. With `isNews` it was written just now. */
  readLater(most: Bounds, isNews: boolean): Promise<boolean> {
    return this.#take(async () => {
      if (this.isFollowed && this.info.size - this.lines.end > MOST_BEHIND) {
        await this.#openAtEnd(CHUNK);
        return true;
      }
      let hasRead = false;
      while (!this.isAtEnd) {
        const data = await this.#read(this.lines.end, CHUNK);
        if (data.length === 0) break;
        this.lines.append(data, isNews ? Date.now() / 1000 : undefined);
        hasRead = true;
        this.lines.dropFirst(most.lines, most.bytes);
        if (!isNews) break;
      }
      return hasRead;
    });
  }

  async #read(start: number, size: number): Promise<Uint8Array> {
    const address = addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs/{name}", {
      ...this.run,
      name: this.info.name,
      identity: this.info.identity,
      start,
      size,
    });
    const response = await request(address);
    const data = new Uint8Array(await response.arrayBuffer());
    // It may have grown since it was listed.
    this.info = { ...this.info, size: Math.max(this.info.size, start + data.length) };
    return data;
  }
}
