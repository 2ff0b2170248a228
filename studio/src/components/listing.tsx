/** A table of things, which scrolls sideways by itself where it is wider than the page. */
import type { ComponentChildren, JSX } from "preact";

/** A column: its name, `number` for numbers, `hidden` for a name that is only read out. What is false is left out. */
export type Column = string | false | { number: string } | { hidden: string };

interface Props {
  label: string;
  columns: readonly Column[];
  class?: string;
  /** Its rows. */
  children: ComponentChildren;
}

export function Listing({ label, columns, class: name = "list", children }: Props): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table class={name}>
        <thead><tr>{columns.map(showColumn)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function showColumn(column: Column): JSX.Element | null {
  if (column === false) return null;
  if (typeof column === "string") return <th key={column} scope="col">{column}</th>;
  if ("number" in column) return <th key={column.number} scope="col" class="number">{column.number}</th>;
  return <th key={column.hidden} scope="col"><span class="hidden-label">{column.hidden}</span></th>;
}
