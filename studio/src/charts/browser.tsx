/** Many metrics on one page: groups by prefix, a search box, and only what is in view is drawn. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useParameter } from "../address";
import { useShortcuts } from "../components/keyboard";
import { groupByPrefix, makeMatcher, type Named, SYSTEM } from "./grouping";

const MARGIN = "400px";
const watched = new WeakMap<Element, (isNear: boolean) => void>();
let observer: IntersectionObserver | undefined;

/** Whether an element is on the screen or near it. */
export function useInView(): [{ current: HTMLDivElement | null }, boolean] {
  const element = useRef<HTMLDivElement | null>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const mine = element.current;
    if (!mine) return undefined;
    observer ??= new IntersectionObserver(
      (entries) => {
        for (const entry of entries) watched.get(entry.target)?.(entry.isIntersecting);
      },
      { rootMargin: MARGIN },
    );
    watched.set(mine, setNear);
    observer.observe(mine);
    return () => {
      observer?.unobserve(mine);
      watched.delete(mine);
    };
  }, []);
  return [element, isNear];
}

/** A place of fixed height whose content is made while it is near the screen. */
export function Lazy({ height, children, class: name = "" }: { height: number; children: () => ComponentChildren; class?: string }): JSX.Element {
  const [element, isNear] = useInView();
  return (
    <div ref={element} class={name} style={{ minHeight: `${height}px` }}>
      {isNear ? children() : null}
    </div>
  );
}

interface BrowserProps<T extends Named> {
  items: readonly T[];
  /** The parameter of the address that has the search. */
  parameter?: string;
  /** What is shown of a group. */
  render: (items: readonly T[], prefix: string) => ComponentChildren;
  /** What stands beside the search box. */
  children?: ComponentChildren;
}

/** Groups of metrics with a search box. A group can be closed. */
export function MetricBrowser<T extends Named>({ items, parameter = "metrics", render, children }: BrowserProps<T>): JSX.Element {
  const [query, setQuery] = useParameter(parameter);
  const found = useMemo(() => {
    const matches = makeMatcher(query);
    return items.filter((each) => matches(each.name));
  }, [items, query]);
  const groups = useMemo(() => groupByPrefix(found), [found]);
  const search = useRef<HTMLInputElement>(null);
  useShortcuts("Charts", [{ keys: ["/"], label: "Search metrics", run: () => search.current?.focus() }]);
  return (
    <div class="metric-browser">
      <div class="chart-bar">
        <input
          ref={search}
          type="search"
          class="metric-search"
          aria-label="Search metrics"
          placeholder="Search metrics"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
        />
        {children}
        <span class="muted small" role="status">
          {found.length === items.length ? countWords(items.length) : `${found.length} of ${countWords(items.length)}`}
        </span>
      </div>
      {groups.map((group) => <MetricGroup key={group.prefix} prefix={group.prefix} items={group.items} isAlone={groups.length === 1} render={render} />)}
      {items.length > 0 && found.length === 0 && <p class="muted">No metric has this in its name.</p>}
    </div>
  );
}

function countWords(count: number): string {
  return count === 1 ? "1 metric" : `${count} metrics`;
}

interface GroupProps<T extends Named> {
  prefix: string;
  items: readonly T[];
  isAlone: boolean;
  render: (items: readonly T[], prefix: string) => ComponentChildren;
}

function MetricGroup<T extends Named>({ prefix, items, isAlone, render }: GroupProps<T>): JSX.Element {
  const [isOpen, setOpen] = useState(true);
  if (isAlone && !prefix) return <section aria-label="Metrics">{render(items, prefix)}</section>;
  const title = prefix === SYSTEM ? "System use" : prefix || "Metrics";
  return (
    <section aria-label={title} class="metric-group">
      <h2>
        <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {title} <span class="muted small">{items.length}</span>
        </button>
      </h2>
      {isOpen && render(items, prefix)}
    </section>
  );
}
