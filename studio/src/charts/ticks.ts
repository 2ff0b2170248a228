/** Labels of axes. Pure. */
import { formatNumber } from "../text/numbers";

/** Steps between labels of relative time, in seconds. */
export const SECONDS: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400,
  21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000,
];

/** Steps of training are whole numbers. */
export const WHOLE: readonly number[] = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();

/** 5 s, 2:30 min, 1:30 h, 2 d 3 h. */
export function formatElapsed(seconds: number): string {
  const sign = seconds < 0 ? "−" : "";
  const size = Math.abs(seconds);
  if (size < 60) return `${sign}${formatNumber(size)} s`;
  const pad = (value: number) => String(Math.floor(value)).padStart(2, "0");
  if (size < 3600) return `${sign}${Math.floor(size / 60)}${size % 60 >= 1 ? `:${pad(size % 60)}` : ""} min`;
  const hours = Math.floor(size / 3600);
  const minutes = (size % 3600) / 60;
  if (hours < 48) return `${sign}${hours}${minutes >= 1 ? `:${pad(minutes)}` : ""} h`;
  return `${sign}${Math.floor(hours / 24)} d${hours % 24 ? ` ${hours % 24} h` : ""}`;
}

/** 1500000 becomes 1.5M, 20000 becomes 20k. */
export function formatCount(value: number): string {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]] as const) {
    const divisor = letter === "k" ? 1e3 : unit;
    if (size >= unit) return `${formatNumber(Number((value / divisor).toPrecision(6)))}${letter}`;
  }
  return formatNumber(value);
}

const SMALLEST_SPAN = 1e-9;

/**
 * A little air above and below. A line that does not change lies in the middle; so does one that changes by no more than
 * rounding, because there are no numbers for labels between its ends.
 */
export function padRange(min: number | null, max: number | null): [number | null, number | null] {
  if (min === null || max === null) return [null, null];
  const size = Math.max(Math.abs(min), Math.abs(max));
  const pad = max - min > size * SMALLEST_SPAN ? (max - min) * 0.06 : size * 0.1 || 1;
  return [min - pad, max + pad];
}
