import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type Dimension, formatValue } from "./dimension";

const MOST_ROWS = 100;

interface Props {
  noun: string;
  labels: readonly string[];
  dimensions: readonly Dimension[];
  /** Which runs are within the filters. */
  kept: Uint8Array;
}

/** What a chart shows as a table, for those who cannot see it. It is made when it is opened. */
export function ChartTable({ noun, labels, dimensions, kept }: Props): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="plot-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {isOpen && <Rows noun={noun} labels={labels} dimensions={dimensions} kept={kept} />}
    </details>
  );
}

function Rows({ noun, labels, dimensions, kept }: Props): JSX.Element {
  const shown = labels.map((_, index) => index).filter((index) => kept[index]);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Values of the chart">
      <table class="small">
        <caption class="hidden-label">{noun} and their values</caption>
        <thead>
          <tr>
            <th scope="col">Name</th>
            {dimensions.map((each) => <th key={each.id} scope="col">{each.label}</th>)}
          </tr>
        </thead>
        <tbody>
          {shown.slice(0, MOST_ROWS).map((index) => (
            <tr key={index}>
              <th scope="row">{labels[index]}</th>
              {dimensions.map((each) => <td key={each.id}>{formatValue(each.values[index] ?? null)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length > MOST_ROWS && <p class="muted">The first {MOST_ROWS} of {shown.length} {noun}.</p>}
    </div>
  );
}
