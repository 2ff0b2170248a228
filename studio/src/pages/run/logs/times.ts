/** Lines of several logs in the order in which they were written, as far as that is known. Pure. */
import type { Line } from "./lines";

const ISO = /^[^\w]{0,2}(?:[A-Z]+[^\w]{0,3})?(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?/;
const CLOCK = /^[^\w]{0,2}(?:[A-Z]\d{4} )?(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?![\d:])/;

/** The time at the beginning of a line, in seconds of whatever clock wrote it; undefined if there is none. */
export function readTime(text: string): number | undefined {
  const whole = ISO.exec(text);
  if (whole) {
    const [, year, month, day, hour, minute, second, fraction] = whole;
    const seconds = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)) / 1000;
    return seconds + readFraction(fraction);
  }
  const clock = CLOCK.exec(text);
  if (!clock) return undefined;
  const [, hour, minute, second, fraction] = clock;
  return Number(hour) * 3600 + Number(minute) * 60 + Number(second) + readFraction(fraction);
}

function readFraction(text: string | undefined): number {
  return text ? Number(`0.${text}`) : 0;
}

export interface Timed {
  readonly lines: readonly Line[];
  /** How large the log is, and when it was begun and last written to: what a line without a time is placed by. */
  readonly size: number;
  readonly from: number;
  readonly to: number;
}

export interface Ordered<T> {
  readonly log: T;
  readonly line: Line;
}

/**
 * The lines of all logs as one list. Lines of one log keep their order.
 *
 * If each log writes times, those count, and a line without one belongs to the line before it. Otherwise a line counts
 * by when it arrived here and, if it was there before, by its place in its log.
 */
export function interleave<T extends Timed>(logs: readonly T[]): Ordered<T>[] {
  const written = logs.map((log) => readTimes(log.lines));
  const hasTimes = !isEstimated(logs.map((log) => log.lines));
  const times = logs.map((log, index) => (hasTimes ? (written[index] ?? []) : estimateTimes(log)));
  return merge(logs, times);
}

/** Whether the order of lines of several logs is a guess, because not each log writes times. */
export function isEstimated(logs: readonly (readonly Line[])[]): boolean {
  const printed = logs.filter((lines) => lines.length > 0);
  return printed.length > 1 && printed.some((lines) => !lines.some((line) => readTime(line.text) !== undefined));
}

function readTimes(lines: readonly Line[]): number[] | undefined {
  const found = lines.map((line) => readTime(line.text));
  let last = found.find((each) => each !== undefined);
  if (last === undefined) return undefined;
  return found.map((each) => {
    // A clock that goes back, as at midnight, must not move a line before the one above it.
    if (each !== undefined && each > last!) last = each;
    return last!;
  });
}

function estimateTimes(log: Timed): number[] {
  let last = -Infinity;
  return log.lines.map((line) => {
    const share = log.size > 0 ? line.offset / log.size : 0;
    const time = line.arrived ?? log.from + share * Math.max(0, log.to - log.from);
    last = Math.max(last, time);
    return last;
  });
}

function merge<T extends Timed>(logs: readonly T[], times: readonly number[][]): Ordered<T>[] {
  const places = logs.map(() => 0);
  const found: Ordered<T>[] = [];
  for (;;) {
    let best = -1;
    for (let index = 0; index < logs.length; index += 1) {
      if (places[index]! >= logs[index]!.lines.length) continue;
      if (best < 0 || times[index]![places[index]!]! < times[best]![places[best]!]!) best = index;
    }
    if (best < 0) return found;
    const log = logs[best]!;
    found.push({ log, line: log.lines[places[best]!]! });
    places[best] = places[best]! + 1;
  }
}
