/** The path of a small chart. */

export const LINE_WIDTH = 100;
export const LINE_HEIGHT = 22;
const MARGIN = 2;

/** An SVG path through the values, equally far from each other; gaps where a value is missing. */
export function drawLine(values: readonly (number | null)[]): string {
  const known = values.filter((each) => each !== null);
  if (!known.length) return "";
  const low = Math.min(...known);
  const span = Math.max(...known) - low;
  const step = values.length > 1 ? (LINE_WIDTH - 2 * MARGIN) / (values.length - 1) : 0;
  let path = "";
  let isDrawing = false;
  values.forEach((value, index) => {
    if (value === null) {
      isDrawing = false;
      return;
    }
    const x = MARGIN + index * step;
    const share = span > 0 ? (value - low) / span : 0.5;
    const y = LINE_HEIGHT - MARGIN - share * (LINE_HEIGHT - 2 * MARGIN);
    path += `${isDrawing ? "L" : "M"}${round(x)} ${round(y)}`;
    isDrawing = true;
  });
  // One value alone is a dot.
  return known.length === 1 ? `${path}h0.01` : path;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
