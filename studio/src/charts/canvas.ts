/** Canvases that are sharp on every screen, and drawn again when their size or the theme changes. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { onThemeChange } from "../theme";

/** The width of an element, as it changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const found = element.current;
    if (!found) return undefined;
    const measure = () => setWidth(Math.floor(found.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(found);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Counts changes of the theme. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => onThemeChange(() => setVersion((count) => count + 1)), []);
  return version;
}

export function isDarkNow(): boolean {
  return getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset["theme"] && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** Give a canvas its size in pixels of the screen, and a context in CSS pixels. Clears it. */
export function prepare(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | undefined {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const context = canvas.getContext("2d") ?? undefined;
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

const [FEWEST, FIRST, MOST] = [100, 400, 2000];
const [FAST, SLOW] = [20, 40];

/**
 * Run `step` for every index below `count`, over as many frames as it takes.
 *
 * A canvas only notes what is drawn, and draws it at the end of the frame. So the time between frames says whether a
 * part was too large.
 */
export function drawInFrames(count: number, step: (index: number) => void): () => void {
  let [index, size, frame, before] = [0, FIRST, 0, 0];
  const go = (now: number) => {
    if (before) size = resizePart(size, now - before);
    before = now;
    const stop = Math.min(count, index + size);
    for (; index < stop; index++) step(index);
    if (index < count) frame = requestAnimationFrame(go);
  };
  // The first part at once: what is small never flickers.
  go(0);
  return () => cancelAnimationFrame(frame);
}

/** How much is drawn in the next frame if the last one took so many milliseconds. */
export function resizePart(size: number, milliseconds: number): number {
  if (milliseconds > SLOW) return Math.max(FEWEST, size >> 1);
  return milliseconds < FAST ? Math.min(MOST, 2 * size) : size;
}

/** The text, shortened at its end so that it fits. */
export function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
  const plain = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  if (context.measureText(plain).width <= width) return plain;
  let [fits, fails] = [0, plain.length];
  while (fits + 1 < fails) {
    const middle = (fits + fails) >> 1;
    if (context.measureText(`${plain.slice(0, middle)}…`).width <= width) fits = middle;
    else fails = middle;
  }
  return `${plain.slice(0, fits)}…`;
}
