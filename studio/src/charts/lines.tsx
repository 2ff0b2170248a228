/** A chart with lines, drawn by uPlot: smoothing, logarithmic axes, zoom and pointer shared with other charts. */
import type { JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { formatDate, formatNumber } from "../text/numbers";
import { type Aligned, align, type ChartOptions, chooseXs, type Horizontal, valueAt } from "./alignment";
import { onColorsChange, readColor, seriesDash, seriesVariable } from "./colors";
import type { ChartLink, Zoom } from "./link";
import type { Points } from "./points";
import { describeChart, findBest, type Goal, placeOf, summarize, tabulate } from "./summaries";
import { formatCount, formatElapsed, padRange, SECONDS, WHOLE } from "./ticks";

export interface ChartSeries {
  /** Stays the same while the points change. */
  id: string;
  label: string;
  points: Points;
  /** The number of values in all, if the points are a part of them. */
  count?: number;
  /** The number of its colour, from 0; by default its place in the list. */
  color?: number;
  /** Seconds since the epoch that are zero in relative time; by default the time of its first point. */
  origin?: number;
}

interface Props {
  title: string;
  series: readonly ChartSeries[];
  options: ChartOptions;
  /** Charts with the same link zoom together and show the same place under the pointer. */
  link: ChartLink;
  /** Whether small or large values are better: the best one is marked. */
  goal?: Goal | undefined;
  height?: number;
  /** What stands at the right of the title. */
  children?: JSX.Element | null;
}

const HEIGHT = 200;
const AXIS_NAMES: Readonly<Record<Horizontal, string>> = { step: "Step", time: "Time", relative: "Time since the start" };

export function LineChart({ title, series, options, link, goal, height = HEIGHT, children }: Props): JSX.Element {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [isTable, setTable] = useState(false);
  const [at, setAt] = useState<number | undefined>(undefined);
  const id = useId();
  const aligned = useMemo(() => align(series, options), [series, options]);
  const shown = series.filter((each) => !hidden.has(each.id));

  return (
    <figure class="chart" aria-labelledby={id}>
      <div class="chart-head">
        <figcaption id={id} class="chart-title" title={title}>{title}</figcaption>
        <span class="spacer" />
        {children}
        <button
          type="button"
          class="plain small chart-action"
          aria-expanded={isTable}
          aria-label={`Values of ${title} as a table`}
          title="Values as a table"
          onClick={() => setTable(!isTable)}
        >
          Values
        </button>
      </div>
      <ChartNumbers series={shown} aligned={aligned} all={series} at={at} options={options} goal={goal} />
      {series.length === 0 ? (
        <div class="chart-canvas" style={{ height: `${height}px` }} />
      ) : isTable ? (
        <ValuesTable {...{ title, series, aligned, options, link, height }} />
      ) : (
        <Canvas
          label={describeChart(title, shown)}
          {...{ series, aligned, options, link, goal, height, hidden }}
          onPointer={setAt}
        />
      )}
      {series.length > 1 && (
        <Legend
          series={series}
          aligned={aligned}
          at={at}
          hidden={hidden}
          onToggle={(each) => {
            const next = new Set(hidden);
            if (!next.delete(each)) next.add(each);
            setHidden(next);
          }}
        />
      )}
    </figure>
  );
}

interface NumbersProps {
  series: readonly ChartSeries[];
  all: readonly ChartSeries[];
  aligned: Aligned;
  at: number | undefined;
  options: ChartOptions;
  goal: Goal | undefined;
}

/** The numbers above the lines: under the pointer, else the last and the best. */
function ChartNumbers({ series, all, aligned, at, options, goal }: NumbersProps): JSX.Element {
  const x = at === undefined ? undefined : aligned.xs[at];
  if (at !== undefined && x !== undefined) {
    const only = all.length === 1 ? valueAt(aligned.raw[0] ?? [], at) : undefined;
    return (
      <p class="chart-numbers">
        {only !== undefined && <strong>{formatNumber(only)}</strong>}
        <span class="muted"> at {formatPlace(x, options.x)}</span>
      </p>
    );
  }
  const only = series.length === 1 ? series[0] : undefined;
  if (!only) {
    const winner = findWinner(series, goal);
    return (
      <p class="chart-numbers">
        {winner ? (
          <span class="muted">
            best {formatNumber(winner.points.values[winner.at])} by {winner.label}
          </span>
        ) : (
          all.length > 1 && <span class="muted">{series.length} series</span>
        )}
      </p>
    );
  }
  const { last } = summarize(only.points);
  const best = findBest(only.points, goal);
  return (
    <p class="chart-numbers">
      <strong>{last < 0 ? "no number yet" : formatNumber(only.points.values[last])}</strong>
      {best >= 0 && (
        <span class="muted">
          {" "}
          best {formatNumber(only.points.values[best])} at {placeOf(only.points, best)}
        </span>
      )}
    </p>
  );
}

function findWinner(series: readonly ChartSeries[], goal: Goal | undefined): { label: string; points: Points; at: number } | undefined {
  let winner: { label: string; points: Points; at: number } | undefined;
  for (const { label, points } of series) {
    const at = findBest(points, goal);
    const value = points.values[at];
    const before = winner?.points.values[winner.at];
    if (value === undefined) continue;
    if (before === undefined || (goal === "min" ? value < before : value > before)) winner = { label, points, at };
  }
  return winner;
}

interface LegendProps {
  series: readonly ChartSeries[];
  aligned: Aligned;
  at: number | undefined;
  hidden: ReadonlySet<string>;
  onToggle: (id: string) => void;
}

/** One button for each line, which hides it. */
function Legend({ series, aligned, at, hidden, onToggle }: LegendProps): JSX.Element {
  return (
    <ul class="chart-legend" aria-label="Lines">
      {series.map((each, n) => {
        const value = at === undefined ? undefined : valueAt(aligned.raw[n] ?? [], at);
        return (
          <li key={each.id}>
            <button
              type="button"
              class="plain"
              aria-pressed={!hidden.has(each.id)}
              title={hidden.has(each.id) ? `Show ${each.label}` : `Hide ${each.label}`}
              onClick={() => onToggle(each.id)}
            >
              <i class="chart-swatch" style={{ background: `var(${seriesVariable(each.color ?? n)})` }} />
              <span class="chart-label">{each.label}</span>
              {value !== undefined && <span class="muted">{formatNumber(value)}</span>}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

interface TableProps {
  title: string;
  series: readonly ChartSeries[];
  aligned: Aligned;
  options: ChartOptions;
  link: ChartLink;
  height: number;
}

/** The values of the part of the axis that the chart shows. */
function ValuesTable({ title, series, aligned, options, link, height }: TableProps): JSX.Element {
  const [zoom, setZoom] = useState(link.zoom);
  useEffect(() => link.subscribe(setZoom), [link]);
  const isShown = (_: unknown, n: number) => !zoom || ((aligned.xs[n] ?? 0) >= zoom[0] && (aligned.xs[n] ?? 0) <= zoom[1]);
  const columns = series.map((each, n) => ({ label: series.length > 1 ? each.label : "Value", cells: (aligned.raw[n] ?? []).filter(isShown) }));
  const first = AXIS_NAMES[options.x];
  const table = tabulate(aligned.xs.filter(isShown), columns, { first, formatX: (x) => formatPlace(x, options.x).replace("step ", "") });
  return (
    // A region that scrolls has to be reached by the keyboard.
    <div class="chart-table" tabIndex={0} role="region" aria-label={`Values of ${title}`} style={{ height: `${height}px` }}>
      <table>
        <thead>
          <tr>{table.head.map((each, n) => <th key={n} scope="col" class={n ? "number" : ""}>{each}</th>)}</tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row[0]}>{row.map((cell, n) => <td key={n} class={n ? "number" : ""}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {table.left > 0 && <p class="muted small">{table.left} rows between these are left out.</p>}
    </div>
  );
}

function formatPlace(x: number, horizontal: Horizontal): string {
  if (horizontal === "time") return formatDate(x);
  return horizontal === "relative" ? formatElapsed(x) : `step ${formatNumber(x)}`;
}

interface CanvasProps {
  label: string;
  series: readonly ChartSeries[];
  aligned: Aligned;
  options: ChartOptions;
  link: ChartLink;
  goal: Goal | undefined;
  height: number;
  hidden: ReadonlySet<string>;
  onPointer: (at: number | undefined) => void;
}

/** The drawing. It is made anew only when its lines or axes are others; new values are given to the one that is there. */
function Canvas(props: CanvasProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const { series, aligned, options, link, height, hidden } = props;
  const isSmooth = options.smoothing > 0;
  const shape = [
    options.x,
    options.logX,
    options.logY,
    isSmooth,
    height,
    ...series.map((each, n) => `${each.id}#${each.color ?? n}`),
  ].join("\n");

  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const made = makeChart(element, latest);
    chart.current = made;
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width && width !== made.width) made.setSize({ width, height });
    });
    observer.observe(element);
    const stopColors = onColorsChange(() => made.redraw(false, true));
    const stopZoom = link.subscribe((zoom) => showRange(made, latest.current.options, zoom));
    return () => {
      observer.disconnect();
      stopColors();
      stopZoom();
      chart.current = undefined;
      made.destroy();
    };
  }, [shape, link]);

  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    const made = chart.current;
    if (!made || made.series.length !== 1 + series.length * (isSmooth ? 2 : 1)) return;
    made.batch(() => {
      made.setData(toData(aligned), false);
      showRange(made, options, link.zoom);
    });
  }, [aligned]);

  useEffect(() => {
    const made = chart.current;
    if (!made) return;
    series.forEach((each, n) => {
      for (const line of linesOf(n, series.length, isSmooth)) {
        if (made.series[line]?.show === hidden.has(each.id)) made.setSeries(line, { show: !hidden.has(each.id) });
      }
    });
  }, [hidden, shape]);

  return <div ref={place} class="chart-canvas" role="img" aria-label={props.label} style={{ height: `${height}px` }} />;
}

/** uPlot's numbers of the lines of a series: the raw one, and the smooth one over it. */
function linesOf(n: number, count: number, isSmooth: boolean): number[] {
  return isSmooth ? [1 + n, 1 + count + n] : [1 + n];
}

function toData({ xs, raw, smoothed }: Aligned): uPlot.AlignedData {
  return [xs, ...raw, ...smoothed] as uPlot.AlignedData;
}

function showRange(chart: uPlot, { logX }: ChartOptions, zoom: Zoom | undefined): void {
  const xs = chart.data[0];
  let min = zoom?.[0] ?? xs[0];
  let max = zoom?.[1] ?? xs[xs.length - 1];
  if (min === undefined || max === undefined) return;
  if (logX && min <= 0) min = xs[0] ?? 1;
  if (!(max > min)) [min, max] = logX ? [min / 2, min * 2] : [min - 1, min + 1];
  chart.setScale("x", { min, max });
}

function makeChart(element: HTMLElement, latest: { current: CanvasProps }): uPlot {
  const { series, aligned, options, link, height, hidden } = latest.current;
  const isSmooth = options.smoothing > 0;
  const line = (each: ChartSeries, n: number, isFaint: boolean): uPlot.Series => ({
    label: each.label,
    stroke: () => readColor(seriesVariable(each.color ?? n)),
    width: isFaint ? 1 : 1.5,
    alpha: isFaint ? 0.3 : 1,
    dash: seriesDash(each.color ?? n),
    show: !hidden.has(each.id),
    points: isFaint ? { show: false } : { size: 4, fill: () => readColor("--raised") },
  });
  const axis: uPlot.Axis = {
    stroke: () => readColor("--muted"),
    grid: { stroke: () => readColor("--line"), width: 1 },
    ticks: { show: false },
    border: { show: false },
    font: "11px system-ui, 'DejaVu Sans', sans-serif",
    gap: 4,
  };
  const made: uPlot = new uPlot(
    {
      width: element.clientWidth || 400,
      height,
      padding: [8, 14, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: options.x === "time", distr: options.logX ? 3 : 1 },
        y: options.logY ? { distr: 3 } : { range: (_, min, max) => padRange(min, max) },
      },
      series: [
        {},
        ...series.map((each, n) => line(each, n, isSmooth)),
        ...(isSmooth ? series.map((each, n) => line(each, n, false)) : []),
      ],
      axes: [
        { ...axis, size: 26, space: 60, ...describeX(options) },
        { ...axis, size: measureLabels, space: 32, values: (_, splits) => splits.map(labelValue) },
      ],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false, dist: 5 },
        points: { size: 6, width: 0, fill: (chart, n) => toColor(chart.series[n]?.stroke, chart, n) },
        bind: {
          dblclick: () => () => {
            link.setZoom(undefined);
            return null;
          },
        },
        sync: { key: link.key, setSeries: false, scales: ["x", null], filters: { pub: isMove } },
      },
      hooks: {
        setSelect: [
          (chart) => {
            const { left, width } = chart.select;
            if (width < 2) return;
            const range: Zoom = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
            chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            link.setZoom(range);
          },
        ],
        setCursor: [(chart) => latest.current.onPointer(chart.cursor.left === undefined || chart.cursor.left < 0 ? undefined : (chart.cursor.idx ?? undefined))],
        draw: [(chart) => markBest(chart, latest.current)],
      },
    },
    toData(aligned),
    element,
  );
  if (link.zoom) showRange(made, options, link.zoom);
  return made;
}

function toColor(stroke: uPlot.Series.Stroke | undefined, chart: uPlot, n: number): CanvasRenderingContext2D["fillStyle"] {
  return (typeof stroke === "function" ? stroke(chart, n) : stroke) ?? "";
}

/** Other charts show where the pointer is; they are zoomed through the link. */
function isMove(type: string): boolean {
  return type === "mousemove" || type === "mouseleave";
}

function describeX({ x, logX }: ChartOptions): Partial<uPlot.Axis> {
  if (x === "time") return {};
  const format = x === "relative" ? formatElapsed : formatCount;
  const values = (_: uPlot, splits: number[]) => splits.map((each) => (each === null ? "" : format(each)));
  return logX ? { values } : { values, incrs: [...(x === "relative" ? SECONDS : WHOLE)] };
}

function labelValue(value: number | null): string {
  return value === null ? "" : formatNumber(Number(value.toPrecision(12)));
}

function measureLabels(_: uPlot, values: string[] | null): number {
  const longest = Math.max(2, ...(values ?? []).map((each) => each.length));
  return 12 + longest * 6.5;
}

/** A ring around the best value of each line. */
function markBest(chart: uPlot, { series, options, goal, hidden }: CanvasProps): void {
  if (!goal) return;
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  for (const [n, each] of series.entries()) {
    const best = hidden.has(each.id) ? -1 : findBest(each.points, goal);
    const y = each.points.values[best];
    const x = chooseXs(each.points, options.x, each.origin)[best];
    if (x === undefined || y === undefined || (options.logY && y <= 0) || (options.logX && x <= 0)) continue;
    const left = chart.valToPos(x, "x", true);
    const top = chart.valToPos(y, "y", true);
    if (left < bbox.left - 1 || left > bbox.left + bbox.width + 1) continue;
    ctx.save();
    ctx.beginPath();
    ctx.arc(left, top, 4 * ratio, 0, 2 * Math.PI);
    ctx.fillStyle = readColor("--raised");
    ctx.strokeStyle = readColor(seriesVariable(each.color ?? n));
    ctx.lineWidth = 2 * ratio;
    ctx.fill();
    ctx.stroke();
    ctx.restore();
  }
}
