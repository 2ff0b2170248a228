/** A scatter chart on a canvas: two dimensions as axes, a third as colour. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { drawInFrames, fitText, isDarkNow, prepare, useThemeVersion, useWidth } from "./canvas";
import { type ColorBy, colorRuns, orderRuns } from "./coloring";
import { readColor } from "./colors";
import { type Dimension, formatValue, makeTicks, placeValues } from "./dimension";
import { Legend } from "./legend";
import { findNearestPoint } from "./nearest";
import { ChartTable } from "./table";
import { Tooltip } from "./tooltip";

interface Props {
  noun: string;
  labels: readonly string[];
  x: Dimension;
  y: Dimension;
  color: ColorBy;
  /** Which runs are within the filters; the others are faded. */
  kept: Uint8Array;
  highlighted?: number | undefined;
  onHighlight?: (index: number | undefined) => void;
  onOpen?: (index: number) => void;
  height?: number;
}

const MARGIN = { top: 14, right: 18, bottom: 44, left: 64 };
const FONT = '12px system-ui, "DejaVu Sans", sans-serif';
const REACH = 12;

interface Layout {
  width: number;
  height: number;
  xs: Float32Array;
  ys: Float32Array;
}

export function Scatter(props: Props): JSX.Element {
  const { x, y, color, kept, labels, noun, height = 300 } = props;
  const frame = useRef<HTMLDivElement>(null);
  const points = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const theme = useThemeVersion();
  const [pointed, setPointed] = useState<number | undefined>();

  const layout = useMemo(() => makeLayout(x, y, width, height), [x, y, width, height]);
  const colors = useMemo(() => colorRuns(color, isDarkNow(), readColor), [color, theme]);
  const order = useMemo(() => orderRuns(color), [color]);
  useEffect(() => {
    const canvas = points.current;
    if (!canvas || !width) return undefined;
    const context = prepare(canvas, width, height);
    if (!context) return undefined;
    drawAxes(context, layout, x, y);
    return drawPoints(context, layout, colors, order, kept);
  }, [layout, colors, order, kept, theme]);
  const shown = pointed ?? props.highlighted;
  useEffect(() => {
    const context = overlay.current && width ? prepare(overlay.current, width, height) : undefined;
    if (context && shown !== undefined) drawMark(context, layout, shown, colors[shown] ?? "");
  }, [layout, colors, shown, theme]);

  const move = (event: PointerEvent) => {
    const box = overlay.current?.getBoundingClientRect();
    const next = findNearestPoint(layout.xs, layout.ys, event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0), REACH);
    if (next !== pointed) props.onHighlight?.(next);
    setPointed(next);
  };
  const leave = () => {
    props.onHighlight?.(undefined);
    setPointed(undefined);
  };
  const placed = layout.xs.reduce((sum, each, index) => sum + (Number.isNaN(each) || Number.isNaN(layout.ys[index]) ? 0 : 1), 0);
  const dimensions = [...new Set([x, y, color.dimension])];
  return (
    <div class="scatter">
      <div class="plot-layers" ref={frame} style={{ height: `${height}px` }}>
        <canvas ref={points} role="img" aria-label={`Scatter chart of ${y.label} over ${x.label}: ${placed} of ${labels.length} ${noun} have both values.`} />
        <canvas
          ref={overlay}
          aria-hidden="true"
          class={pointed === undefined ? "" : "pointing"}
          onPointerMove={move}
          onPointerLeave={leave}
          onClick={() => pointed !== undefined && props.onOpen?.(pointed)}
        />
        {pointed !== undefined && (
          <Tooltip x={layout.xs[pointed] ?? 0} y={layout.ys[pointed] ?? 0} width={width} height={height} title={labels[pointed] ?? ""}>
            {dimensions.map((each) => [each.label, formatValue(each.values[pointed] ?? null)] as const)}
          </Tooltip>
        )}
      </div>
      <Legend color={color} theme={theme} />
      <ChartTable labels={labels} dimensions={dimensions} kept={kept} noun={noun} />
    </div>
  );
}

function makeLayout(x: Dimension, y: Dimension, width: number, height: number): Layout {
  const [across, down] = [width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom];
  return {
    width,
    height,
    xs: placeValues(x).map((place) => MARGIN.left + inset(place) * across),
    ys: placeValues(y).map((place) => MARGIN.top + (1 - inset(place)) * down),
  };
}

/** Points at the ends of an axis do not touch the frame. */
function inset(place: number): number {
  return 0.03 + 0.94 * place;
}

function drawPoints(
  context: CanvasRenderingContext2D,
  { xs, ys }: Layout,
  colors: readonly string[],
  order: Uint32Array,
  kept: Uint8Array,
): () => void {
  const count = order.length;
  const [faded, size] = [readColor("--line"), count > 2000 ? 2.5 : 4];
  return drawInFrames(2 * count, (number) => {
    const isBackground = number < count;
    const index = order[number % count] ?? 0;
    const [atX, atY] = [xs[index] ?? Number.NaN, ys[index] ?? Number.NaN];
    if (isBackground === !!kept[index] || Number.isNaN(atX) || Number.isNaN(atY)) return;
    context.globalAlpha = isBackground ? 0.7 : 0.9;
    context.fillStyle = isBackground ? faded : (colors[index] ?? faded);
    context.beginPath();
    context.arc(atX, atY, size, 0, 2 * Math.PI);
    context.fill();
  });
}

function drawMark(context: CanvasRenderingContext2D, { xs, ys }: Layout, index: number, color: string): void {
  context.beginPath();
  context.arc(xs[index] ?? Number.NaN, ys[index] ?? Number.NaN, 7, 0, 2 * Math.PI);
  context.fillStyle = color;
  context.strokeStyle = readColor("--text");
  context.lineWidth = 2;
  context.fill();
  context.stroke();
}

function drawAxes(context: CanvasRenderingContext2D, { width, height }: Layout, x: Dimension, y: Dimension): void {
  const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
  const [across, down] = [right - MARGIN.left, bottom - MARGIN.top];
  const [text, muted, grid] = [readColor("--text"), readColor("--muted"), readColor("--line")];
  context.font = FONT;
  context.lineWidth = 1;
  context.strokeStyle = grid;
  context.fillStyle = muted;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const line = (x0: number, y0: number, x1: number, y1: number) => {
    context.beginPath();
    context.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
    context.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    context.stroke();
  };
  for (const tick of makeTicks(y.scale, Math.max(2, Math.floor(down / 45)))) {
    const at = MARGIN.top + (1 - inset(tick.at)) * down;
    line(MARGIN.left, at, right, at);
    context.fillText(fitText(context, tick.label, MARGIN.left - 14), MARGIN.left - 6, at);
  }
  context.textAlign = "center";
  const ticks = makeTicks(x.scale, Math.max(2, Math.floor(across / 80)));
  for (const tick of ticks) {
    const at = MARGIN.left + inset(tick.at) * across;
    line(at, MARGIN.top, at, bottom);
    context.fillText(fitText(context, tick.label, Math.max(30, across / ticks.length - 6)), at, bottom + 14);
  }
  context.fillStyle = text;
  context.font = `600 ${FONT}`;
  context.fillText(fitText(context, x.label, across), MARGIN.left + across / 2, height - 10);
  context.save();
  context.translate(10, MARGIN.top + down / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(fitText(context, y.label, down), 0, 0);
  context.restore();
}
