/** What the charts of a page share: the part of the horizontal axis they show, and the pointer. */
export type Zoom = readonly [number, number];

let next = 1;

export class ChartLink {
  /** Charts with the same key show the same place under the pointer. */
  readonly key = `charts-${next++}`;
  zoom: Zoom | undefined;
  private readonly listeners = new Set<(zoom: Zoom | undefined) => void>();

  subscribe(listener: (zoom: Zoom | undefined) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Show a part of the axis in all charts; undefined shows all of it. */
  setZoom(zoom: Zoom | undefined): void {
    if (this.zoom?.[0] === zoom?.[0] && this.zoom?.[1] === zoom?.[1]) return;
    this.zoom = zoom;
    for (const each of [...this.listeners]) each(zoom);
  }
}

/** "10~200" as a part of an address. */
export function formatZoom(zoom: Zoom | undefined): string {
  return zoom ? zoom.map((each) => String(Number(each.toPrecision(15)))).join("~") : "";
}

export function parseZoom(text: string): Zoom | undefined {
  const [from, to, ...others] = text.split("~").map(Number);
  if (from === undefined || to === undefined || others.length || !text) return undefined;
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : undefined;
}
