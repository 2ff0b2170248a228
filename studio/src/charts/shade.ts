/**
 * A scale of colours for numbers, even to the eye: lightness and hue change by equal steps (OKLCH).
 *
 * The better end is the one that stands out: dark on a light page, light on a dark one.
 */
export const SHADES = 32;

type Oklch = readonly [lightness: number, chroma: number, hue: number];
const LIGHT: readonly [Oklch, Oklch] = [[0.72, 0.13, 95], [0.33, 0.15, 285]];
const DARK: readonly [Oklch, Oklch] = [[0.5, 0.13, 285], [0.93, 0.13, 100]];

/** The colours from the worst to the best. */
export function makeShades(isDark: boolean, count = SHADES): string[] {
  const [from, to] = isDark ? DARK : LIGHT;
  // Through green, not through red.
  const mix = (index: number, share: number) => (from[index] ?? 0) + ((to[index] ?? 0) - (from[index] ?? 0)) * share;
  return Array.from({ length: count }, (_, index) => {
    const share = index / (count - 1);
    return toRgb([mix(0, share), mix(1, share), mix(2, share)]);
  });
}

/** Index of the shade of a place between 0 and 1. */
export function chooseShade(place: number, isHighBetter: boolean, count = SHADES): number {
  const share = Math.min(1, Math.max(0, isHighBetter ? place : 1 - place));
  return Math.min(count - 1, Math.floor(share * count));
}

function toRgb([lightness, chroma, hue]: Oklch): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return `rgb(${linear.map(encode).join(" ")})`;
}

function encode(linear: number): number {
  const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, value)));
}
