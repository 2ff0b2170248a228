import type { JSX } from "preact";

interface Props {
  x: number;
  y: number;
  /** Of the chart: the tooltip stays within it. */
  width: number;
  height: number;
  title: string;
  children: readonly (readonly [string, string])[];
}

const MOST_ROWS = 14;

/** Names and values beside the pointer. */
export function Tooltip({ x, y, width, height, title, children }: Props): JSX.Element {
  const isRight = x > width / 2;
  const isLow = y > height / 2;
  const style = { ...(isLow ? { bottom: `${height - y + 12}px` } : { top: `${y + 12}px` }), ...(isRight ? { right: `${width - x + 12}px` } : { left: `${x + 12}px` }) };
  return (
    <div class="plot-tooltip" style={style} aria-hidden="true">
      <strong>{title}</strong>
      <dl>
        {children.slice(0, MOST_ROWS).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value.length > 60 ? `${value.slice(0, 60)}…` : value}</dd>
          </div>
        ))}
      </dl>
      {children.length > MOST_ROWS && <p class="muted small">and {children.length - MOST_ROWS} more</p>}
    </div>
  );
}
