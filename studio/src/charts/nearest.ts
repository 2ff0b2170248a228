/** Which line or point is under the pointer. */

/**
 * The line nearest to a point between two axes, or undefined if none is within `reach` pixels.
 *
 * `places` has one array for each axis: pixels from the top, NaN where a line has no value.
 */
export function findNearestLine(
  places: readonly Float32Array[],
  axisX: readonly number[],
  x: number,
  y: number,
  reach: number,
  kept?: Uint8Array,
): number | undefined {
  const right = Math.min(axisX.length - 1, Math.max(1, axisX.findIndex((each) => each >= x)));
  const left = right - 1;
  const from = places[left];
  const to = places[right];
  if (!from || !to) return undefined;
  const x0 = axisX[left] ?? 0;
  const share = Math.min(1, Math.max(0, (x - x0) / ((axisX[right] ?? 1) - x0)));
  let best: number | undefined;
  let distance = reach;
  for (let index = 0; index < from.length; index++) {
    if (kept && !kept[index]) continue;
    const a = from[index] ?? 0;
    const b = to[index] ?? 0;
    const found = Math.abs(a + (b - a) * share - y);
    if (found < distance) {
      distance = found;
      best = index;
    }
  }
  return best;
}

/** The point nearest to the pointer, or undefined if none is within `reach` pixels. */
export function findNearestPoint(
  xs: Float32Array,
  ys: Float32Array,
  x: number,
  y: number,
  reach: number,
): number | undefined {
  let best: number | undefined;
  let distance = reach * reach;
  for (let index = 0; index < xs.length; index++) {
    const dx = (xs[index] ?? Number.NaN) - x;
    const dy = (ys[index] ?? Number.NaN) - y;
    const found = dx * dx + dy * dy;
    if (found <= distance) {
      distance = found;
      best = index;
    }
  }
  return best;
}
