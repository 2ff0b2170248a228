/** Parallel coordinates on a canvas: one axis for each dimension, one line for each run. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatNumber } from "../text/numbers";
import { applyBrushes, type Brush, type Brushes, changeBrush, makeBrush, placeBrush } from "./brush";
import { drawInFrames, fitText, isDarkNow, prepare, useThemeVersion, useWidth } from "./canvas";
import { type ColorBy, colorRuns, orderRuns } from "./coloring";
import { readColor } from "./colors";
import { type Dimension, formatValue, makeTicks, placeValues } from "./dimension";
import { Legend } from "./legend";
import { findNearestLine } from "./nearest";
import { ChartTable } from "./table";
import { Tooltip } from "./tooltip";

interface Props {
  /** What the lines are, in the plural: "trials". */
  noun: string;
  labels: readonly string[];
  dimensions: readonly Dimension[];
  color: ColorBy;
  brushes: Brushes;
  onBrush: (brushes: Brushes) => void;
  /** Index of a run that is pointed at elsewhere. */
  highlighted?: number | undefined;
  onHighlight?: (index: number | undefined) => void;
  onOpen?: (index: number) => void;
  height?: number;
}

const MARGIN = { top: 34, bottom: 30, side: 56 };
const SMALLEST_GAP = 96;
const BRUSH_REACH = 18;
const LINE_REACH = 8;
const FONT = '12px system-ui, "DejaVu Sans", sans-serif';

interface Layout {
  width: number;
  height: number;
  bottom: number;
  axisX: number[];
  /** Pixels from the top by axis and run. Runs without a value are below the axis. */
  places: Float32Array[];
}

export function Parallel(props: Props): JSX.Element {
  const { dimensions, color, brushes, noun, labels, height = 320 } = props;
  const frame = useRef<HTMLDivElement>(null);
  const lines = useRef<HTMLCanvasElement>(null);
  const mark = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const available = useWidth(frame);
  const theme = useThemeVersion();
  const [pointed, setPointed] = useState<{ index: number; x: number; y: number } | undefined>();
  const [drag, setDrag] = useState<{ axis: number; start: number; end: number } | undefined>();

  const layout = useMemo(() => makeLayout(dimensions, available, height), [dimensions, available, height]);
  const drawn = useMemo(() => (drag ? withDrag(dimensions, brushes, drag) : brushes), [dimensions, brushes, drag]);
  const kept = useMemo(() => applyBrushes(dimensions, drawn, labels.length), [dimensions, drawn, labels.length]);
  const colors = useMemo(() => colorRuns(color, isDarkNow(), readColor), [color, theme]);
  const order = useMemo(() => orderRuns(color), [color]);
  const matching = useMemo(() => kept.reduce((sum, each) => sum + each, 0), [kept]);

  useEffect(() => {
    const canvas = lines.current;
    if (!canvas || !layout.width) return undefined;
    return drawLines(canvas, layout, colors, order, kept, Object.keys(drawn).length > 0);
  }, [layout, colors, order, kept, theme]);
  const shown = pointed?.index ?? props.highlighted;
  useEffect(() => {
    const canvas = mark.current;
    if (canvas && layout.width) drawMark(canvas, layout, shown, colors);
  }, [layout, shown, colors, theme]);
  useEffect(() => {
    const canvas = overlay.current;
    if (canvas && layout.width) drawAxes(canvas, layout, dimensions, drawn);
  }, [layout, dimensions, drawn, theme]);

  const point = (event: PointerEvent): [number, number] => {
    const box = overlay.current?.getBoundingClientRect();
    return [event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0)];
  };
  const toPlace = (y: number) => (layout.bottom - y) / (layout.bottom - MARGIN.top);
  const highlight = (next: typeof pointed) => {
    if (next?.index !== pointed?.index) props.onHighlight?.(next?.index);
    setPointed(next);
  };
  const move = (event: PointerEvent) => {
    const [x, y] = point(event);
    if (drag) return setDrag({ ...drag, end: toPlace(y) });
    const index = findNearestLine(layout.places, layout.axisX, x, y, LINE_REACH, kept);
    highlight(index === undefined ? undefined : { index, x, y });
  };
  const press = (event: PointerEvent) => {
    const element = event.currentTarget as HTMLElement;
    // Beside the axes, a finger scrolls.
    if (event.button !== 0 || (event.pointerType === "touch" && element === overlay.current)) return;
    const [x, y] = point(event);
    const axis = layout.axisX.findIndex((each) => Math.abs(each - x) <= BRUSH_REACH);
    if (axis < 0) return;
    element.setPointerCapture(event.pointerId);
    highlight(undefined);
    setDrag({ axis, start: toPlace(y), end: toPlace(y) });
  };
  const release = () => {
    if (!drag) {
      if (pointed) props.onOpen?.(pointed.index);
      return;
    }
    // A click on an axis clears its brush.
    const isDrag = Math.abs(drag.end - drag.start) * (layout.bottom - MARGIN.top) > 3;
    const id = dimensions[drag.axis]?.id ?? "";
    props.onBrush(isDrag ? withDrag(dimensions, brushes, drag) : changeBrush(brushes, id, undefined));
    setDrag(undefined);
  };

  const handlers = { onPointerMove: move, onPointerDown: press, onPointerUp: release, onPointerCancel: () => setDrag(undefined) };
  const summary = `${labels.length} ${noun} over ${dimensions.length} axes: ${dimensions.map((each) => each.label).join(", ")}. ${matching} match the filters.`;
  return (
    <div class="parallel">
      <div class="scroll plot-scroll" ref={frame} tabIndex={0} role="group" aria-label="Parallel coordinates">
        <div class="plot-layers" style={{ width: `${layout.width}px`, height: `${height}px` }}>
          <canvas ref={lines} role="img" aria-label={`Parallel coordinates of ${summary}`} />
          <canvas ref={mark} aria-hidden="true" />
          <canvas
            ref={overlay}
            aria-hidden="true"
            class={pointed ? "pointing" : "brushing"}
            {...handlers}
            onPointerLeave={() => highlight(undefined)}
          />
          {layout.axisX.map((x, axis) => (
            <div key={axis} aria-hidden="true" class="plot-axis" style={{ left: `${x - BRUSH_REACH}px`, width: `${2 * BRUSH_REACH}px` }} {...handlers} />
          ))}
          {pointed && (
            <Tooltip x={pointed.x} y={pointed.y} width={layout.width} height={height} title={labels[pointed.index] ?? ""}>
              {describe(dimensions, color, pointed.index)}
            </Tooltip>
          )}
        </div>
      </div>
      <Legend color={color} theme={theme} />
      <Filters dimensions={dimensions} brushes={brushes} onBrush={props.onBrush} matching={matching} noun={noun} count={labels.length} />
      <ChartTable labels={labels} dimensions={dimensions} kept={kept} noun={noun} />
    </div>
  );
}

function describe(dimensions: readonly Dimension[], color: ColorBy, index: number): (readonly [string, string])[] {
  const all = dimensions.includes(color.dimension) ? dimensions : [...dimensions, color.dimension];
  return all.map((each) => [each.label, formatValue(each.values[index] ?? null)] as const);
}

function makeLayout(dimensions: readonly Dimension[], available: number, height: number): Layout {
  const gaps = Math.max(1, dimensions.length - 1);
  const width = available ? Math.max(available, 2 * MARGIN.side + gaps * SMALLEST_GAP) : 0;
  const bottom = height - MARGIN.bottom;
  const axisX = dimensions.map((_, index) => MARGIN.side + (index * (width - 2 * MARGIN.side)) / gaps);
  const places = dimensions.map((each) =>
    placeValues(each).map((place) => (Number.isNaN(place) ? height - 10 : bottom - place * (bottom - MARGIN.top))),
  );
  return { width, height, bottom, axisX, places };
}

function withDrag(
  dimensions: readonly Dimension[],
  brushes: Brushes,
  drag: { axis: number; start: number; end: number },
): Brushes {
  const dimension = dimensions[drag.axis];
  if (!dimension) return brushes;
  return changeBrush(brushes, dimension.id, makeBrush(dimension.scale, drag.start, drag.end));
}

function drawLines(
  canvas: HTMLCanvasElement,
  { width, height, axisX, places }: Layout,
  colors: readonly string[],
  order: Uint32Array,
  kept: Uint8Array,
  isBrushed: boolean,
): () => void {
  const context = prepare(canvas, width, height);
  if (!context) return () => undefined;
  const [faded, count] = [readColor("--line-strong"), order.length];
  const stroke = (index: number) => {
    context.beginPath();
    for (let axis = 0; axis < axisX.length; axis++) context.lineTo(axisX[axis] ?? 0, places[axis]?.[index] ?? 0);
    context.stroke();
  };
  const matching = kept.reduce((sum, each) => sum + each, 0);
  const [opacity, faint] = [fade(600, matching, 0.06, 0.9), fade(60, count, 0.02, 0.2)];
  // First what does not match, then what does.
  const total = isBrushed ? 2 * count : count;
  return drawInFrames(total, (number) => {
    const isBackground = isBrushed && number < count;
    const index = order[isBackground ? number : number - (total - count)] ?? 0;
    if (isBackground === !!kept[index]) return;
    // Lines of one pixel are drawn twice as fast as others.
    context.lineWidth = isBackground || count > 1000 ? 1 : 1.3;
    context.globalAlpha = isBackground ? faint : opacity;
    context.strokeStyle = isBackground ? faded : (colors[index] ?? faded);
    stroke(index);
  });
}

/** The more lines, the fainter: where many lie over each other stays visible. */
function fade(few: number, count: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, few / Math.max(1, count)));
}

function drawMark(canvas: HTMLCanvasElement, layout: Layout, shown: number | undefined, colors: readonly string[]): void {
  const context = prepare(canvas, layout.width, layout.height);
  if (!context || shown === undefined) return;
  for (const [lineWidth, style] of [[6, readColor("--raised")], [3, colors[shown] ?? ""]] as const) {
    context.lineWidth = lineWidth;
    context.strokeStyle = style;
    context.beginPath();
    layout.axisX.forEach((x, axis) => context.lineTo(x, layout.places[axis]?.[shown] ?? 0));
    context.stroke();
  }
}

function drawAxes(canvas: HTMLCanvasElement, layout: Layout, dimensions: readonly Dimension[], brushes: Brushes): void {
  const context = prepare(canvas, layout.width, layout.height);
  if (!context) return;
  const theme = { text: readColor("--text"), muted: readColor("--muted"), line: readColor("--line-strong"), brush: readColor("--accent"), halo: readColor("--raised") };
  const gap = layout.axisX.length > 1 ? (layout.axisX[1] ?? 0) - (layout.axisX[0] ?? 0) : layout.width;
  dimensions.forEach((dimension, axis) => {
    const side = axis === dimensions.length - 1 && axis > 0 ? -1 : 1;
    drawAxis(context, layout, dimension, layout.axisX[axis] ?? 0, gap, side, brushes[dimension.id], theme);
  });
}

function drawAxis(
  context: CanvasRenderingContext2D,
  { bottom, height }: Layout,
  dimension: Dimension,
  x: number,
  gap: number,
  side: 1 | -1,
  brush: Brush | undefined,
  theme: { text: string; muted: string; line: string; brush: string; halo: string },
): void {
  const span = bottom - MARGIN.top;
  context.font = FONT;
  context.lineWidth = 1;
  context.strokeStyle = theme.line;
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, MARGIN.top);
  context.lineTo(Math.round(x) + 0.5, bottom);
  context.stroke();
  for (const [low, high] of brush ? placeBrush(dimension.scale, brush) : []) {
    context.globalAlpha = 0.25;
    context.fillStyle = theme.brush;
    context.fillRect(x - 8, bottom - high * span, 16, Math.max(2, (high - low) * span));
    context.globalAlpha = 1;
    context.strokeStyle = theme.brush;
    context.strokeRect(x - 8, bottom - high * span, 16, Math.max(2, (high - low) * span));
  }
  context.lineJoin = "round";
  context.textBaseline = "middle";
  context.textAlign = side > 0 ? "left" : "right";
  const write = (text: string, atX: number, atY: number, width: number, style: string) => {
    const fitted = fitText(context, text, width);
    context.lineWidth = 4;
    context.strokeStyle = theme.halo;
    context.strokeText(fitted, atX, atY);
    context.fillStyle = style;
    context.fillText(fitted, atX, atY);
  };
  for (const tick of makeTicks(dimension.scale, Math.max(2, Math.floor(span / 45)))) {
    write(tick.label, x + side * 7, bottom - tick.at * span, gap - 16, theme.muted);
  }
  if (dimension.values.includes(null)) write("none", x + side * 7, height - 10, gap - 16, theme.muted);
  context.textAlign = "center";
  context.font = `600 ${FONT}`;
  write(dimension.label, x, 12, gap - 10, theme.text);
}

interface FilterProps {
  dimensions: readonly Dimension[];
  brushes: Brushes;
  onBrush: (brushes: Brushes) => void;
  matching: number;
  count: number;
  noun: string;
}

/** The brushes in words, each with a button that clears it, and the same choice by keyboard. */
function Filters({ dimensions, brushes, onBrush, matching, count, noun }: FilterProps): JSX.Element {
  const active = dimensions.filter((each) => brushes[each.id]);
  return (
    <div class="plot-filters">
      <div class="row">
        <span role="status">{active.length ? `${matching} of ${count} ${noun} match` : <span class="muted">Drag along an axis to filter.</span>}</span>
        {active.map((each) => (
          <button key={each.id} type="button" class="plot-chip" onClick={() => onBrush(changeBrush(brushes, each.id, undefined))}>
            <span class="hidden-label">Clear filter </span>
            {each.label} {describeBrush(brushes[each.id])} <span aria-hidden="true">✕</span>
          </button>
        ))}
        {active.length > 1 && <button type="button" class="plain" onClick={() => onBrush({})}>Clear all</button>}
      </div>
      <details>
        <summary>Filters as fields</summary>
        <div class="plot-fields">
          {dimensions.map((each) => (
            <FilterField key={each.id} dimension={each} brush={brushes[each.id]} onChange={(brush) => onBrush(changeBrush(brushes, each.id, brush))} />
          ))}
        </div>
      </details>
    </div>
  );
}

export function describeBrush(brush: Brush | undefined): string {
  if (!brush) return "";
  return "of" in brush ? `is ${brush.of.join(" or ")}` : `${formatNumber(brush.from)} to ${formatNumber(brush.to)}`;
}

function FilterField({
  dimension: { label, scale },
  brush,
  onChange,
}: {
  dimension: Dimension;
  brush: Brush | undefined;
  onChange: (brush: Brush | undefined) => void;
}): JSX.Element {
  if (scale.kind === "category") {
    const chosen = brush && "of" in brush ? brush.of : [];
    const toggle = (each: string) => {
      const next = chosen.includes(each) ? chosen.filter((other) => other !== each) : [...chosen, each];
      onChange(next.length ? { of: next } : undefined);
    };
    return (
      <fieldset>
        <legend>{label}</legend>
        {scale.categories.slice(0, 50).map((each) => (
          <label key={each} class="check">
            <input type="checkbox" checked={chosen.includes(each)} onChange={() => toggle(each)} />
            {each}
          </label>
        ))}
      </fieldset>
    );
  }
  const range = brush && "from" in brush ? brush : undefined;
  const change = (name: "from" | "to", text: string) => {
    const given = text.trim() === "" ? undefined : Number(text);
    if (given !== undefined && !Number.isFinite(given)) return;
    const next = { from: range?.from ?? scale.low, to: range?.to ?? scale.high, [name]: given ?? (name === "from" ? scale.low : scale.high) };
    const isAll = next.from <= scale.low && next.to >= scale.high;
    onChange(isAll || next.from > next.to ? undefined : next);
  };
  return (
    <fieldset>
      <legend>{label}</legend>
      {(["from", "to"] as const).map((name) => (
        <label key={name} class="range">
          {name}
          <input
            inputMode="decimal"
            size={8}
            aria-label={`${label} ${name}`}
            placeholder={formatNumber(name === "from" ? scale.low : scale.high)}
            value={range ? formatNumber(range[name]) : ""}
            onChange={(event) => change(name, event.currentTarget.value)}
          />
        </label>
      ))}
    </fieldset>
  );
}
