/** Which rows of a long table are in view. Browsers limit the height of an element, so very long tables are scaled. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Firefox draws nothing beyond about 17 million pixels. */
const TALLEST = 12_000_000;
const BEYOND = 6;

export interface Window {
  /** The first and the last row to draw, the last exclusive. */
  first: number;
  last: number;
  /** Pixels above and below the rows drawn. */
  above: number;
  below: number;
}

/** The rows to draw for a scroll position, and a few more on both sides. */
export function findWindow(scroll: number, height: number, count: number, rowHeight: number): Window {
  const whole = count * rowHeight;
  const drawn = Math.min(whole, TALLEST);
  const inView = Math.ceil(height / rowHeight);
  const top = topRow(scroll, height, count, rowHeight);
  const first = Math.max(0, Math.floor(top) - BEYOND);
  const last = Math.min(count, Math.floor(top) + inView + 1 + BEYOND);
  const rows = (last - first) * rowHeight;
  // In a scaled table the rows are put where the scroll position is.
  const above = whole === drawn ? first * rowHeight : Math.max(0, Math.min(drawn - rows, scroll - (top - first) * rowHeight));
  return { first, last, above, below: Math.max(0, drawn - above - rows) };
}

/** The row at the upper edge, with a fraction. */
function topRow(scroll: number, height: number, count: number, rowHeight: number): number {
  const whole = count * rowHeight;
  if (whole <= TALLEST) return Math.max(0, Math.min(scroll, whole) / rowHeight);
  const share = Math.max(0, Math.min(1, scroll / Math.max(1, TALLEST - height)));
  return share * Math.max(0, count - height / rowHeight);
}

/** The scroll position that brings a row into view with the least movement. `header` covers the upper edge. */
export function scrollTo(row: number, scroll: number, height: number, count: number, rowHeight: number): number {
  const top = topRow(scroll, height, count, rowHeight);
  const inView = Math.max(1, Math.floor(height / rowHeight));
  const wanted = row < top ? row : row >= top + inView ? row - inView + 1 : top;
  if (wanted === top) return scroll;
  if (count * rowHeight <= TALLEST) return wanted * rowHeight;
  return (wanted / Math.max(1, count - height / rowHeight)) * (TALLEST - height);
}

/** How far an element is scrolled, and how high it is. */
export function useScroll(frame: RefObject<HTMLElement | null>): { scroll: number; height: number } {
  const [size, setSize] = useState({ scroll: 0, height: 800 });
  useEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const measure = () => setSize({ scroll: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  return size;
}
