/** The filter: one line in the language of docs/guide/search.md, completed while it is written. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { useResource } from "../../api/resource";
import { findWanted, type Names, suggest, type Suggestion } from "./completion";

interface Props {
  workspace: string;
  filter: string;
  names: Names;
  error: ApiError | undefined;
  /** `isDone` unless it is still being written. */
  onFilter: (filter: string, isDone: boolean) => void;
}

const INPUT = "runs-filter";
const LIST = "runs-filter-list";
const PROBLEM = "runs-filter-problem";
/** A filter takes effect by itself so long after the last key. */
const REST = 400;
const MOST_VALUES = 50;

export function focusFilter(): void {
  document.getElementById(INPUT)?.focus();
}

export function FilterBox({ workspace, filter, names, error, onFilter }: Props): JSX.Element {
  const [text, setText] = useState(filter);
  const [caret, setCaret] = useState(filter.length);
  const [isOpen, setIsOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  // Another address, a saved view for example, has another filter.
  useEffect(() => setText(filter), [filter]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const wanted = findWanted(text.slice(0, caret));
  const isForValue = isOpen && wanted.kind === "value" && wanted.field !== "";
  const bare = wanted.prefix.replace(/^["']/, "");
  const values = useResource(
    async (signal) => {
      if (!isForValue) return [];
      const given = { workspace, field: wanted.field, prefix: bare, limit: MOST_VALUES };
      const found = await call("GET /api/v1/workspaces/{workspace}/run-fields/values", given, { signal });
      return found.values;
    },
    [workspace, isForValue, wanted.field, bare],
  );
  const suggestions = isOpen ? suggest(wanted, names, values.value ?? []) : [];
  const isShown = suggestions.length > 0;

  function apply(next: string, isDone: boolean): void {
    clearTimeout(timer.current);
    onFilter(next.trim(), isDone);
  }

  function change(next: string, at: number): void {
    setText(next);
    setCaret(at);
    setActive(-1);
    setIsOpen(true);
    clearTimeout(timer.current);
    // What is only half written would be an error.
    const isWhole = !next.trim() || findWanted(`${next} `).kind === "link";
    if (isWhole) timer.current = window.setTimeout(() => apply(next, false), REST);
  }

  function take(chosen: Suggestion): void {
    const next = text.slice(0, wanted.start) + chosen.text + text.slice(caret).replace(/^\s+/, "");
    const at = wanted.start + chosen.text.length;
    change(next, at);
    requestAnimationFrame(() => {
      input.current?.focus();
      input.current?.setSelectionRange(at, at);
    });
  }

  function listen(event: KeyboardEvent): void {
    const chosen = suggestions[active];
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!isShown) return setIsOpen(true);
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((active + step + suggestions.length + (active < 0 && step < 0 ? 1 : 0)) % suggestions.length);
    } else if ((event.key === "Enter" || event.key === "Tab") && isShown && chosen) {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Enter") {
      setIsOpen(false);
      // What is rendered may be one key behind.
      apply(input.current?.value ?? text, true);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (isShown) setIsOpen(false);
      else input.current?.blur();
    }
  }

  return (
    <div class="runs-filter">
      <input
        ref={input}
        id={INPUT}
        type="text"
        role="combobox"
        class="mono"
        aria-label="Filter"
        aria-expanded={isShown}
        aria-controls={LIST}
        aria-autocomplete="list"
        aria-invalid={!!error}
        aria-describedby={error && !isShown ? PROBLEM : undefined}
        aria-activedescendant={isShown && active >= 0 ? `${LIST}-${active}` : undefined}
        autoComplete="off"
        spellcheck={false}
        placeholder="Filter, for example: lr < 0.1 and metric.loss.min <= 0.3"
        value={text}
        onInput={(event) => change(event.currentTarget.value, event.currentTarget.selectionStart ?? event.currentTarget.value.length)}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? 0)}
        onKeyDown={listen}
        onFocus={() => setIsOpen(true)}
        onBlur={() => setIsOpen(false)}
      />
      <ul id={LIST} class="runs-suggestions" role="listbox" aria-label="Suggestions" hidden={!isShown}>
        {suggestions.map((each, index) => (
          <li
            key={each.text}
            id={`${LIST}-${index}`}
            role="option"
            aria-selected={index === active}
            // Before the input loses the focus.
            onMouseDown={(event) => {
              event.preventDefault();
              take(each);
            }}
          >
            <span class="mono">{each.text}</span>
            <span class="muted small">{each.note}</span>
          </li>
        ))}
      </ul>
      {error && !isShown && <Problem error={error} />}
    </div>
  );
}

/** The cause of an unreadable filter is the filter with a mark below the position. */
function Problem({ error }: { error: ApiError }): JSX.Element {
  return (
    <div id={PROBLEM} class="runs-problem" role="alert">
      <strong>{capitalize(error.headline)}</strong>
      {error.reason && <pre>{error.reason}</pre>}
      {error.hint && <p>{error.hint}</p>}
    </div>
  );
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
