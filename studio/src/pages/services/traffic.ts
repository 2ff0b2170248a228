/** Rates and latencies from the counters of a service, which only grow. */
import type { LatencyBucket, ServiceTraffic } from "../../api/types";
import { toNumber } from "../../text/numbers";

export const WINDOW_SECONDS = 60;
const KEPT_SECONDS = 300;

/** Samples with a new one; old ones are dropped, and all of them if the counters began again. */
export function addSample(samples: readonly ServiceTraffic[], next: ServiceTraffic): ServiceTraffic[] {
  const last = samples[samples.length - 1];
  if (last && next.requests < last.requests) return [next];
  return [...samples.filter((each) => toNumber(next.at) - toNumber(each.at) <= KEPT_SECONDS), next];
}

/** Requests per second between neighbours, oldest first. */
export function listRates(samples: readonly ServiceTraffic[]): number[] {
  return samples.slice(1).map((each, index) => {
    const before = samples[index] as ServiceTraffic;
    const seconds = toNumber(each.at) - toNumber(before.at);
    return seconds > 0 ? (each.requests - before.requests) / seconds : 0;
  });
}

export interface Recent {
  /** Seconds that it covers; 0 if there is one sample only, and everything since the deployment is meant. */
  seconds: number;
  requests: number;
  failed: number;
  refused: number;
  rate: number | undefined;
  median: number | undefined;
  p95: number | undefined;
}

/** What happened in the last minute, or since the deployment if nothing did. */
export function summarizeRecent(samples: readonly ServiceTraffic[]): Recent | undefined {
  const last = samples[samples.length - 1];
  if (!last) return undefined;
  const first = samples.find((each) => toNumber(last.at) - toNumber(each.at) <= WINDOW_SECONDS) ?? last;
  const seconds = toNumber(last.at) - toNumber(first.at);
  const isQuiet = last.requests === first.requests;
  const buckets = isQuiet ? last.latency : subtract(last.latency, first.latency);
  return {
    seconds: isQuiet ? 0 : seconds,
    requests: isQuiet ? last.requests : last.requests - first.requests,
    failed: isQuiet ? last.failed : last.failed - first.failed,
    refused: isQuiet ? last.refused : last.refused - first.refused,
    rate: seconds > 0 ? (last.requests - first.requests) / seconds : undefined,
    median: estimateQuantile(buckets, 0.5),
    p95: estimateQuantile(buckets, 0.95),
  };
}

function subtract(after: readonly LatencyBucket[], before: readonly LatencyBucket[]): LatencyBucket[] {
  return after.map((each, index) => ({ ...each, count: each.count - (before[index]?.count ?? 0) }));
}

/** The latency below which a share of the requests lies, in seconds; within a bucket they are taken as even. */
export function estimateQuantile(buckets: readonly LatencyBucket[], share: number): number | undefined {
  const total = buckets.reduce((sum, each) => sum + each.count, 0);
  if (!total) return undefined;
  let rest = share * total;
  let lower = 0;
  for (const { up_to, count } of buckets) {
    const upper = up_to === null ? lower : toNumber(up_to);
    if (count && rest <= count) return lower + (upper - lower) * (rest / count);
    rest -= count;
    lower = upper;
  }
  return lower;
}

/** Points of a line in a box of a width and height, as an SVG path takes them; a flat line for one value. */
export function drawLine(values: readonly number[], width: number, height: number): string {
  const most = Math.max(...values, 1e-9);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return values.map((value, index) => `${index ? "L" : "M"}${(index * step).toFixed(1)} ${(height - (value / most) * (height - 2) - 1).toFixed(1)}`).join("");
}

/** A latency in seconds as a person reads it: "0.42 ms", "12 ms", "1.3 s". */
export function formatLatency(seconds: number): string {
  if (seconds >= 1) return `${Number(seconds.toPrecision(2))} s`;
  return `${Number((seconds * 1000).toPrecision(2))} ms`;
}
