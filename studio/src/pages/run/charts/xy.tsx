/** Small drawings of a few dozen points, as SVG. */
import type { JSX } from "preact";
import { seriesVariable } from "../../../charts/colors";
import { formatNumber } from "../../../text/numbers";
import type { XyLine } from "./structured";

const WIDTH = 320;
const HEIGHT = 200;
const LEFT = 44;
const BOTTOM = 34;
const TOP = 8;

function scale(values: readonly number[], from: number, to: number): (value: number) => number {
  const low = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const high = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

export function XyChart({ label, xLabel, yLabel, lines }: { label: string; xLabel: string; yLabel: string; lines: readonly XyLine[] }): JSX.Element {
  const xs = lines.flatMap((line) => line.xs);
  const ys = lines.flatMap((line) => line.ys);
  const x = scale(xs, LEFT, WIDTH - 8);
  const y = scale(ys, HEIGHT - BOTTOM, TOP);
  return (
    <>
      <svg class="drawing" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${label}: ${yLabel} over ${xLabel}`}>
        <Frame xs={xs} ys={ys} xLabel={xLabel} yLabel={yLabel} />
        {lines.map((line, n) => (
          <polyline
            key={line.label}
            points={line.xs.map((each, at) => `${x(each).toFixed(1)},${y(line.ys[at] ?? 0).toFixed(1)}`).join(" ")}
            fill="none"
            stroke={`var(${seriesVariable(n)})`}
            stroke-width="1.5"
          />
        ))}
      </svg>
      {lines.length > 1 && (
        <ul class="chart-legend">
          {lines.slice(0, 20).map((line, n) => (
            <li key={line.label} class="row small">
              <i class="chart-swatch" style={{ background: `var(${seriesVariable(n)})` }} /> {line.label}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Frame({ xs, ys, xLabel, yLabel }: { xs: readonly number[]; ys: readonly number[]; xLabel: string; yLabel: string }): JSX.Element {
  const bottom = HEIGHT - BOTTOM;
  const ends = (values: readonly number[]) => [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
  const [left, right] = ends(xs);
  const [low, high] = ends(ys);
  return (
    <g class="drawing-frame">
      <path d={`M${LEFT} ${TOP}V${bottom}H${WIDTH - 8}`} fill="none" />
      <text x={LEFT} y={bottom + 13}>{formatNumber(left)}</text>
      <text x={WIDTH - 8} y={bottom + 13} text-anchor="end">{formatNumber(right)}</text>
      <text x={(LEFT + WIDTH) / 2} y={HEIGHT - 5} text-anchor="middle">{xLabel}</text>
      <text x={LEFT - 4} y={bottom} text-anchor="end">{formatNumber(low)}</text>
      <text x={LEFT - 4} y={TOP + 9} text-anchor="end">{formatNumber(high)}</text>
      <text transform={`translate(12 ${(TOP + bottom) / 2}) rotate(-90)`} text-anchor="middle">{yLabel}</text>
    </g>
  );
}

export function Bars({ label, edges, counts }: { label: string; edges: readonly number[]; counts: readonly number[] }): JSX.Element {
  const wide = (WIDTH - 8 - LEFT) / counts.length;
  const y = scale([0, ...counts], HEIGHT - BOTTOM, TOP);
  return (
    <svg class="drawing" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${label}: histogram with ${counts.length} bars`}>
      <Frame xs={edges} ys={[0, ...counts]} xLabel="Residual" yLabel="Count" />
      {counts.map((count, n) => (
        <rect
          key={n}
          x={LEFT + n * wide + 0.5}
          y={y(count)}
          width={Math.max(0.5, wide - 1)}
          height={Math.max(0, HEIGHT - BOTTOM - y(count))}
          fill="var(--series-1)"
        >
          <title>{`${formatNumber(edges[n])} to ${formatNumber(edges[n + 1] ?? edges[n])}: ${count}`}</title>
        </rect>
      ))}
    </svg>
  );
}

/** Rows are true classes, columns predicted ones; darker cells are more frequent within their row. */
export function Matrix({ labels, rows }: { labels: readonly string[]; rows: readonly (readonly number[])[] }): JSX.Element {
  return (
    <table class="matrix">
      <thead>
        <tr>
          <td class="muted small">true ↓ predicted →</td>
          {labels.map((each, n) => <th key={n} scope="col" class="number">{each}</th>)}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, n) => {
          const sum = row.reduce((a, b) => a + b, 0) || 1;
          return (
            <tr key={n}>
              <th scope="row">{labels[n]}</th>
              {row.map((cell, at) => (
                <td
                  key={at}
                  class="number"
                  style={{ background: `color-mix(in srgb, var(${n === at ? "--good" : "--bad"}) ${Math.round((35 * cell) / sum)}%, transparent)` }}
                >
                  {formatNumber(cell)}
                </td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
