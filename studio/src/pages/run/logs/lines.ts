/**
 * A window of a log: a range of its bytes, cut into lines. It grows at both ends and forgets what is too much. Pure.
 *
 * Lines are cut as bytes and decoded one by one, so a character that is torn by the end of a range is never decoded
 * in parts. Offsets are those of the file: they name a line for as long as the log exists.
 */

export interface Line {
  /** Where it begins in the log. */
  readonly offset: number;
  readonly text: string;
  /** When it arrived here, in seconds, if it arrived while it was watched. */
  readonly arrived: number | undefined;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
/** A longer line is shown in parts, so that one line never fills the memory. */
const LONGEST_LINE = 64 * 1024;

export class LogLines {
  /** The bytes from `start` to `end` of the log are here. */
  start: number;
  end: number;
  lines: Line[] = [];
  /** Grows with every change, so that whoever has seen a version knows whether there is another. */
  version = 0;
  /** The number of the first line, counted from 1, where it is known. */
  firstNumber: number | undefined;
  #rest: Uint8Array = new Uint8Array(0);
  /** Where the line begins that has no line break yet. Parts of it that were overwritten are not kept. */
  #restLine: number;
  #restArrived: number | undefined;
  /** Whether the first bytes may belong to a line that began before them. */
  #isTorn: boolean;
  #hasCuts = false;
  #decoder = new TextDecoder();

  /** Begins at an offset; `isTorn` if a line may have begun before it. */
  constructor(start: number, isTorn: boolean) {
    this.start = start;
    this.end = start;
    this.#restLine = start;
    this.#isTorn = isTorn && start > 0;
    this.firstNumber = start === 0 ? 1 : undefined;
  }

  /** Adds the bytes that follow `end`. */
  append(data: Uint8Array, arrived?: number): void {
    if (data.length === 0) return;
    this.version += 1;
    let offset = this.end - this.#rest.length;
    this.end += data.length;
    let bytes = this.#rest.length ? join(this.#rest, data) : data;
    if (this.#isTorn) {
      const first = bytes.indexOf(LINE_FEED);
      if (first < 0 && bytes.length < LONGEST_LINE) {
        this.#rest = bytes.slice();
        return;
      }
      const skipped = first < 0 ? countTorn(bytes) : first + 1;
      bytes = bytes.subarray(skipped);
      offset += skipped;
      this.start = this.#restLine = offset;
      this.#isTorn = false;
    }
    const firstArrived = this.#restArrived ?? arrived;
    let begin = 0;
    for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, begin)) {
      this.#push(bytes.subarray(begin, at), begin === 0 ? this.#restLine : offset + begin, begin === 0 ? firstArrived : arrived);
      begin = at + 1;
    }
    if (begin > 0) this.#restLine = offset + begin;
    this.#keepRest(bytes.subarray(begin), begin === 0 ? firstArrived : arrived);
  }

  #push(bytes: Uint8Array, offset: number, arrived: number | undefined): void {
    const pieces = decodeLine(this.#decoder, bytes);
    if (pieces.length > 1) this.#forgetNumbers();
    for (const [at, text] of pieces) this.lines.push({ offset: offset + at, text, arrived });
  }

  #keepRest(bytes: Uint8Array, arrived: number | undefined): void {
    let rest = dropOverwritten(bytes);
    if (rest.length > LONGEST_LINE) {
      const cut = rest.length - countIncomplete(rest);
      this.#push(rest.subarray(0, cut), this.#restLine, arrived);
      this.#forgetNumbers();
      rest = rest.subarray(cut);
      this.#restLine = this.end - rest.length;
    }
    // A copy: the range it was read from is not held for a few bytes.
    this.#rest = rest.slice();
    this.#restArrived = rest.length ? arrived : undefined;
  }

  /** A line that is shown in parts counts as several, so numbers would be wrong. */
  #forgetNumbers(): void {
    this.#hasCuts = true;
    this.firstNumber = undefined;
  }

  /** The last line, which has no line break yet; undefined if there is none. */
  get incomplete(): Line | undefined {
    if (this.#rest.length === 0 || this.#isTorn) return undefined;
    const whole = this.#rest.subarray(0, this.#rest.length - countIncomplete(this.#rest));
    return { offset: this.#restLine, text: showOverwritten(this.#decoder.decode(whole)), arrived: this.#restArrived };
  }

  /** Adds the bytes before `start`; of the first line only what is whole. Returns how many lines that were. */
  prepend(data: Uint8Array): number {
    if (data.length === 0) return 0;
    const from = this.start - data.length;
    const earlier = new LogLines(from, from > 0);
    earlier.append(data);
    // What has no line break is the beginning of a line that was cut because it is long.
    const rest = earlier.incomplete;
    const found = rest ? [...earlier.lines, rest] : earlier.lines;
    this.version += 1;
    if (found.length === 0) {
      // A line that is longer than what was read: take it without looking for its beginning.
      const torn = countTorn(data);
      for (const [at, text] of decodeLine(this.#decoder, data.subarray(torn))) {
        found.push({ offset: from + torn + at, text, arrived: undefined });
      }
    }
    if (rest || earlier.#hasCuts) this.#forgetNumbers();
    this.start = found[0]?.offset ?? from;
    this.lines = [...found, ...this.lines];
    if (this.firstNumber !== undefined) this.firstNumber -= found.length;
    if (this.start === 0 && !this.#hasCuts) this.firstNumber = 1;
    return found.length;
  }

  /** Forgets the oldest lines, so that at most so many lines and bytes stay. */
  dropFirst(most: number, mostBytes = Infinity): void {
    let count = Math.max(0, this.lines.length - most);
    while (count < this.lines.length && this.end - this.lines[count]!.offset > mostBytes) count += 1;
    if (count === 0) return;
    this.version += 1;
    this.start = this.lines[count]?.offset ?? this.#restLine;
    this.lines = this.lines.slice(count);
    if (this.firstNumber !== undefined) this.firstNumber += count;
  }

  /** Forgets the newest lines, so that at most so many lines and bytes stay; they can be read again. */
  dropLast(most: number, mostBytes = Infinity): void {
    let count = Math.min(most, this.lines.length);
    while (count > 1 && this.lines[count - 1]!.offset - this.start > mostBytes) count -= 1;
    const next = this.lines[count]?.offset;
    if (next === undefined) return;
    this.version += 1;
    this.end = next;
    this.lines = this.lines.slice(0, count);
    this.#rest = new Uint8Array(0);
    this.#restLine = this.end;
    this.#restArrived = undefined;
  }

  /** The place of the line that has this byte; -1 if it is not here. */
  find(offset: number): number {
    if (offset < this.start || offset >= this.end) return -1;
    let low = 0;
    let high = this.lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lines[middle]!.offset <= offset) low = middle + 1;
      else high = middle;
    }
    // The line after the last one is the incomplete one.
    return this.incomplete && offset >= this.#restLine ? this.lines.length : low - 1;
  }
}

/** The parts of a line with their places in it; one part, unless the line is too long. */
function decodeLine(decoder: TextDecoder, bytes: Uint8Array): [number, string][] {
  if (bytes.length <= LONGEST_LINE) return [[0, showOverwritten(decoder.decode(bytes))]];
  let line = dropOverwritten(bytes);
  let at = 0;
  const found: [number, string][] = [];
  while (line.length > LONGEST_LINE) {
    const piece = line.subarray(0, LONGEST_LINE);
    const cut = piece.length - countIncomplete(piece);
    found.push([at, decoder.decode(piece.subarray(0, cut))]);
    line = line.subarray(cut);
    at = bytes.length - line.length;
  }
  found.push([at, showOverwritten(decoder.decode(line))]);
  return found;
}

/** What a terminal shows of a line that was overwritten, as by progress bars. */
export function showOverwritten(line: string): string {
  if (!line.includes("\r")) return line;
  const whole = line.replace(/\r+$/, "");
  return whole.slice(whole.lastIndexOf("\r") + 1);
}

/** The same for bytes; the last carriage return stays while it is unknown what follows it. */
function dropOverwritten(bytes: Uint8Array): Uint8Array {
  let last = bytes.length;
  while (last > 0 && bytes[last - 1] === CARRIAGE_RETURN) last -= 1;
  return bytes.subarray(last === 0 ? 0 : bytes.lastIndexOf(CARRIAGE_RETURN, last - 1) + 1);
}

/** How many bytes at the end belong to a character that is not whole. */
export function countIncomplete(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return (byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4) > back ? back : 0;
  }
  return 0;
}

/** How many bytes at the beginning belong to a character that began before them. */
export function countTorn(bytes: Uint8Array): number {
  let count = 0;
  while (count < Math.min(3, bytes.length) && (bytes[count]! & 0xc0) === 0x80) count += 1;
  return count;
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
