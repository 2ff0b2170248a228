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

/** Run `step` for every index below `count` over as many frames as it takes, and never long in one of them. */
export function drawInFrames(count: number, step: (index: number) => void, budget = 12): () => void {
  let index = 0;
  let frame = 0;
  const go = () => {
    const end = performance.now() + budget;
    while (index < count) {
      const stop = Math.min(count, index + 100);
      for (; index < stop; index++) step(index);
      if (performance.now() > end) break;
    }
    if (index < count) frame = requestAnimationFrame(go);
  };
  go();
  return () => cancelAnimationFrame(frame);
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
