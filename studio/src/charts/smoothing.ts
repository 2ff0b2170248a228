/**
 * The exponential moving average, corrected for its beginning: the first value counts fully, not as an average with zero.
 * `weight` from 0 (nothing changes) to just below 1. Gaps stay gaps and do not count.
 */
export function smooth(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let average = 0;
  let remaining = 1;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    average = average * weight + value * (1 - weight);
    remaining *= weight;
    return average / (1 - remaining);
  });
}
