/** Which columns the table has, and in which order. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog";
import type { Names } from "./completion";
import { BUILT_IN, type Column, describeColumn, formatField, parseColumn } from "./fields";

interface Props {
  columns: readonly Column[];
  names: Names;
  /** Whether there are further names, which only a search finds. */
  isAll: boolean;
  onChange: (columns: readonly Column[]) => void;
  onSearch: (prefix: string) => void;
  onReset: () => void;
  onClose: () => void;
}

interface Entry {
  title: string;
  kind: string;
  /** What of it can be shown, with its label. */
  forms: readonly (readonly [string, string])[];
}

const MOST = 150;

export function ColumnChooser({ columns, names, isAll, onChange, onSearch, onReset, onClose }: Props): JSX.Element {
  const [search, setSearch] = useState("");
  const chosen = new Set(columns.map((each) => each.spec));
  const found = listEntries(names).filter((each) => `${each.title} ${each.kind}`.toLowerCase().includes(search.toLowerCase()));

  function toggle(spec: string): void {
    onChange(chosen.has(spec) ? columns.filter((each) => each.spec !== spec) : [...columns, parseColumn(spec)]);
  }

  function move(index: number, by: number): void {
    const next = [...columns];
    const [taken] = next.splice(index, 1);
    if (taken) next.splice(index + by, 0, taken);
    onChange(next);
  }

  return (
    <Dialog title="Columns" onClose={onClose}>
      <div class="runs-chooser">
        <section aria-label="Available columns">
          <input
            type="search"
            aria-label="Search columns"
            placeholder="Search arguments, metrics, tags"
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              if (!isAll) onSearch(event.currentTarget.value);
            }}
          />
          <ul class="runs-entries">
            {found.slice(0, MOST).map((each) => (
              <li key={`${each.kind} ${each.title}`}>
                <span class="runs-entry-title" title={each.title}>{each.title}</span>
                <span class="muted small">{each.kind}</span>
                <span class="runs-forms">
                  {each.forms.map(([label, spec]) => (
                    <label key={spec}>
                      <input type="checkbox" checked={chosen.has(spec)} onChange={() => toggle(spec)} aria-label={`${each.title} ${label}`.trim()} />
                      {label}
                    </label>
                  ))}
                </span>
              </li>
            ))}
          </ul>
          <p class="muted small" role="status">
            {found.length > MOST ? `${found.length - MOST} more: type to find them.` : found.length ? "" : "No column has this name."}
          </p>
        </section>
        <section aria-label="Shown columns">
          <h3>Shown, in this order</h3>
          <ol class="runs-entries">
            {columns.map((each, index) => {
              const { label, note } = describeColumn(each);
              const name = `${label} ${note}`.trim();
              return (
                <li key={each.spec}>
                  <span class="runs-entry-title" title={each.spec}>{label}</span>
                  <span class="muted small">{note}</span>
                  <span class="runs-forms">
                    <button type="button" class="plain" aria-label={`Move ${name} up`} disabled={index === 0} onClick={() => move(index, -1)}>↑</button>
                    <button type="button" class="plain" aria-label={`Move ${name} down`} disabled={index === columns.length - 1} onClick={() => move(index, 1)}>↓</button>
                    <button type="button" class="plain" aria-label={`Hide ${name}`} disabled={columns.length === 1} onClick={() => toggle(each.spec)}>✕</button>
                  </span>
                </li>
              );
            })}
          </ol>
        </section>
      </div>
      <div class="buttons">
        <button type="button" onClick={onReset}>Default columns</button>
        <button type="button" class="primary" onClick={onClose}>Done</button>
      </div>
    </Dialog>
  );
}

function listEntries(names: Names): Entry[] {
  return [
    ...Object.entries(BUILT_IN).map(([name, label]) => ({ title: label, kind: "", forms: [["", name]] as const })),
    ...names.arguments.map((name) => ({ title: name, kind: "argument", forms: [["", formatField("argument", name)]] as const })),
    ...names.metrics.map((name) => ({
      title: name,
      kind: "metric",
      forms: [
        ["last", formatField("metric", name)],
        ["min", formatField("metric", name, "min")],
        ["max", formatField("metric", name, "max")],
        ["chart", formatField("line", name)],
      ] as const,
    })),
    ...names.tags.map((name) => ({ title: name, kind: "tag", forms: [["", formatField("tag", name)]] as const })),
    ...names.properties.map((name) => ({ title: name, kind: "property", forms: [["", formatField("property", name)]] as const })),
  ];
}
