/** The values of one parameter or metric over many runs, and how they are placed along an axis. */
import { formatNumber } from "../text/numbers";

export type Value = number | string | null;
export type Kind = "linear" | "log" | "category";

export interface Scale {
  kind: Kind;
  /** The ends of the axis; of no use for categories. */
  low: number;
  high: number;
  /** The categories from the lower end to the upper one. */
  categories: readonly string[];
}

export interface Dimension {
  id: string;
  label: string;
  /** One value for each run, in the same order in all dimensions; null if the run has none. */
  values: readonly Value[];
  scale: Scale;
}

export interface Tick {
  /** 0 at the lower end of the axis, 1 at the upper one. */
  at: number;
  label: string;
}

const AUTOMATIC_LOG = 1000;

/** What a run was given or has logged, as a value of an axis: texts that are numbers become numbers. */
export function toValue(given: unknown): Value {
  if (given === null || given === undefined || given === "") return null;
  if (typeof given === "number") return Number.isFinite(given) ? given : null;
  if (typeof given === "boolean") return String(given);
  if (typeof given !== "string") return JSON.stringify(given);
  if (given === "NaN" || given === "Infinity" || given === "-Infinity") return null;
  const number = Number(given);
  return given.trim() !== "" && Number.isFinite(number) ? number : given;
}

export function makeDimension(id: string, label: string, given: readonly unknown[], wish?: Kind): Dimension {
  const all = given.map(toValue);
  const isText = wish === "category" || all.some((each) => typeof each === "string");
  const values = isText ? all.map((each) => (typeof each === "number" ? formatNumber(each) : each)) : all;
  return { id, label, values, scale: makeScale(values, wish) };
}

export function makeScale(values: readonly Value[], wish?: Kind): Scale {
  if (values.some((each) => typeof each === "string")) return makeCategories(values);
  let low = Infinity;
  let high = -Infinity;
  for (const each of values) {
    if (typeof each !== "number") continue;
    if (each < low) low = each;
    if (each > high) high = each;
  }
  if (low > high) return { kind: "linear", low: 0, high: 1, categories: [] };
  const isLog = low > 0 && wish !== "linear" && (wish === "log" || high / low >= AUTOMATIC_LOG);
  if (low === high) {
    const margin = low === 0 ? 1 : Math.abs(low) / 2;
    return { kind: isLog ? "log" : "linear", low: isLog ? low / 2 : low - margin, high: isLog ? high * 2 : high + margin, categories: [] };
  }
  return { kind: isLog ? "log" : "linear", low, high, categories: [] };
}

function makeCategories(values: readonly Value[]): Scale {
  const categories = [...new Set(values.filter((each) => each !== null).map(String))];
  categories.sort((a, b) => Number(a) - Number(b) || a.localeCompare(b, "en", { numeric: true }));
  return { kind: "category", low: 0, high: 1, categories };
}

/** Where a value is: 0 at the lower end, 1 at the upper one; undefined if it is not on the axis. */
export function placeValue(scale: Scale, value: Value): number | undefined {
  if (value === null) return undefined;
  if (scale.kind === "category") {
    const index = scale.categories.indexOf(String(value));
    return index < 0 ? undefined : (index + 0.5) / scale.categories.length;
  }
  if (typeof value !== "number") return undefined;
  if (scale.kind === "linear") return (value - scale.low) / (scale.high - scale.low);
  if (value <= 0) return undefined;
  return Math.log(value / scale.low) / Math.log(scale.high / scale.low);
}

/** The places of all values of a dimension; NaN for those that have none. */
export function placeValues({ scale, values }: Dimension): Float32Array {
  const places = new Float32Array(values.length);
  const known = scale.kind === "category" ? new Map(scale.categories.map((each) => [each, placeValue(scale, each)])) : undefined;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? null;
    const place = known && value !== null ? known.get(String(value)) : placeValue(scale, value);
    places[index] = place ?? Number.NaN;
  }
  return places;
}

/** The number at a place of a numeric axis. */
export function valueAt(scale: Scale, place: number): number {
  if (scale.kind === "log") return scale.low * (scale.high / scale.low) ** place;
  return scale.low + (scale.high - scale.low) * place;
}

/** About `count` marks: round numbers within the axis, or the categories. */
export function makeTicks(scale: Scale, count: number): Tick[] {
  if (scale.kind === "category") return categoryTicks(scale, count);
  if (scale.kind === "log") {
    const decades = logTicks(scale, count);
    if (decades.length >= 2) return decades;
  }
  return linearTicks(scale, count);
}

function categoryTicks(scale: Scale, count: number): Tick[] {
  const step = Math.max(1, Math.ceil(scale.categories.length / Math.max(1, count)));
  return scale.categories
    .map((label) => ({ at: placeValue(scale, label) ?? 0, label }))
    .filter((_, index) => index % step === 0);
}

function logTicks(scale: Scale, count: number): Tick[] {
  const first = Math.ceil(Math.log10(scale.low) - 1e-9);
  const last = Math.floor(Math.log10(scale.high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / Math.max(2, count)));
  const ticks: Tick[] = [];
  for (let exponent = first; exponent <= last; exponent += step) {
    // 10 ** -5 is 0.000009999999999999999.
    const value = Number(`1e${exponent}`);
    ticks.push({ at: placeValue(scale, value) ?? 0, label: formatTick(value, value) });
  }
  return ticks;
}

function linearTicks(scale: Scale, count: number): Tick[] {
  const step = chooseStep(scale.high - scale.low, count);
  const ticks: Tick[] = [];
  const first = Math.ceil(scale.low / step - 1e-9);
  const last = Math.floor(scale.high / step + 1e-9);
  for (let index = first; index <= last; index++) {
    const value = Number((index * step).toPrecision(12));
    const at = placeValue(scale, value);
    if (at !== undefined) ticks.push({ at, label: formatTick(value, step) });
  }
  return ticks;
}

/** 1, 2 or 5 times a power of ten. */
export function chooseStep(span: number, count: number): number {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = raw / power;
  return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

function formatTick(value: number, step: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  const decimals = Math.min(10, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return decimals ? value.toFixed(decimals) : String(value);
}

export function formatValue(value: Value): string {
  return value === null ? "none" : typeof value === "number" ? formatNumber(value) : value;
}
