/** A list of any number of lines, of which only those on the screen exist. Follows the end until the user scrolls up. */
import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { parseLine, plainText } from "./ansi";
import { chooseRows, placeRows } from "./layout";
import type { Line } from "./lines";
import { markMatches } from "./matches";

export interface Row {
  readonly identity: string;
  readonly line: Line;
  /** Counted from 1, where it is known. */
  readonly number: number | undefined;
  readonly rank: number | null;
}

/** A line to show; another object scrolls to it again. */
export interface Target {
  readonly identity: string;
  readonly offset: number;
}

interface Props {
  label: string;
  rows: readonly Row[];
  hasRanks: boolean;
  isWrapped: boolean;
  search: string;
  target: Target | undefined;
  /** Another number scrolls to the first line. */
  starts: number;
  isFollowed: boolean;
  onFollow: (isFollowed: boolean) => void;
  /** The upper or the lower end of what is there is on the screen. */
  onEdge: (edge: "earlier" | "later") => void;
  onLink: (row: Row) => void;
}

const ROW = 18;
const SPARE = 20;
/** So near to the end counts as at the end, because browsers round. */
const NEAR = 4;

const lengths = new WeakMap<Line, number>();

function lengthOf(line: Line): number {
  let length = lengths.get(line);
  if (length === undefined) {
    length = plainText(line.text).length;
    lengths.set(line, length);
  }
  return length;
}

export function LogViewer(props: Props): JSX.Element {
  const { rows, isWrapped, isFollowed, target } = props;
  const element = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const size = useSize(element);
  const digits = Math.max(3, String(rows[rows.length - 1]?.number ?? 0).length);
  const columns = isWrapped ? Math.max(10, Math.floor(size.columns) - digits - 3 - (props.hasRanks ? 5 : 0)) : 0;
  const rowLengths = useMemo(() => rows.map((each) => lengthOf(each.line)), [rows]);
  const places = useMemo(() => placeRows(rowLengths, columns), [rowLengths, columns]);
  const total = places[places.length - 1]! * ROW;
  const shownTop = isFollowed ? Math.max(0, total - size.height) : Math.min(top, Math.max(0, total - size.height));
  const { first, last } = chooseRows(places, shownTop / ROW, (shownTop + size.height) / ROW, SPARE);
  const longest = useMemo(() => rowLengths.reduce((most, each) => Math.max(most, each), 0), [rowLengths]);

  const anchor = useRef<{ identity: string; offset: number; above: number } | undefined>(undefined);
  // Where this component has scrolled to: another place is the user's.
  const expected = useRef(-1);
  const moveTo = useCallback((place: number) => {
    const node = element.current;
    if (!node) return;
    node.scrollTop = place;
    expected.current = node.scrollTop;
    setTop(node.scrollTop);
  }, []);

  // What the user looks at stays where it is when lines are added or removed above it.
  useLayoutEffect(() => {
    const node = element.current;
    if (!node) return;
    if (isFollowed) {
      moveTo(node.scrollHeight);
      return;
    }
    const kept = anchor.current;
    if (!kept) return;
    const index = rows.findIndex((each) => each.identity === kept.identity && each.line.offset === kept.offset);
    if (index >= 0) moveTo(places[index]! * ROW + kept.above);
  }, [rows, places, isFollowed, size.height]);

  useLayoutEffect(() => {
    if (!target) return;
    const index = findTarget(rows, target);
    if (index < 0) return;
    moveTo(Math.max(0, places[index]! * ROW - size.height / 3));
    keepAnchor();
  }, [target, target !== undefined && findTarget(rows, target) >= 0]);

  useLayoutEffect(() => {
    if (props.starts === 0) return;
    moveTo(0);
    keepAnchor();
  }, [props.starts]);

  function keepAnchor(): void {
    const node = element.current;
    if (!node || rows.length === 0) return;
    const index = chooseRows(places, node.scrollTop / ROW, node.scrollTop / ROW, 0).first;
    const row = rows[index]!;
    anchor.current = { identity: row.identity, offset: row.line.offset, above: node.scrollTop - places[index]! * ROW };
  }

  function handleScroll(): void {
    const node = element.current;
    if (!node) return;
    setTop(node.scrollTop);
    const isAtEnd = node.scrollHeight - node.scrollTop - node.clientHeight <= NEAR;
    keepAnchor();
    if (Math.abs(node.scrollTop - expected.current) <= 1) return;
    expected.current = -1;
    if (isFollowed && !isAtEnd) props.onFollow(false);
    else if (!isFollowed && isAtEnd) props.onEdge("later");
    if (node.scrollTop < node.clientHeight && !(isFollowed && isAtEnd)) props.onEdge("earlier");
  }

  const style = { height: `${total}px`, ...(isWrapped ? {} : { minWidth: `${longest + digits + (props.hasRanks ? 8 : 4)}ch` }) };
  return (
    <div
      ref={element}
      class={isWrapped ? "log-view log-wrapped" : "log-view"}
      role="region"
      aria-label={props.label}
      tabIndex={0}
      onScroll={handleScroll}
    >
      <div class="log-lines" style={style}>
        <div class="log-window" style={{ transform: `translateY(${places[first]! * ROW}px)`, "--digits": `${digits}ch` }}>
          {rows.slice(first, last).map((row) => (
            <LogRow
              key={`${row.identity}:${row.line.offset}`}
              row={row}
              hasRank={props.hasRanks}
              search={props.search}
              isTarget={target?.identity === row.identity && target.offset === row.line.offset}
              onLink={props.onLink}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function findTarget(rows: readonly Row[], target: Target): number {
  return rows.findIndex((each) => each.identity === target.identity && each.line.offset === target.offset);
}

interface RowProps {
  row: Row;
  hasRank: boolean;
  search: string;
  isTarget: boolean;
  onLink: (row: Row) => void;
}

function LogRow({ row, hasRank, search, isTarget, onLink }: RowProps): JSX.Element {
  const pieces = markMatches(parseLine(row.line.text), search);
  const { number } = row;
  return (
    <div class={isTarget ? "log-line log-target" : "log-line"} {...(isTarget ? { "aria-current": true } : {})}>
      <button
        type="button"
        class="log-number"
        tabIndex={-1}
        title="Link to this line"
        aria-label={number === undefined ? "Link to this line" : `Link to line ${number}`}
        onClick={() => onLink(row)}
      >
        {number ?? "·"}
      </button>
      {hasRank && <span class={`log-rank log-rank-${(row.rank ?? 0) % 8}`}>{row.rank}</span>}
      <span class="log-text">
        {pieces.map((each, index) =>
          each.isMatch ? (
            <mark key={index} class={each.style}>{each.text}</mark>
          ) : each.style ? (
            <span key={index} class={each.style}>{each.text}</span>
          ) : (
            each.text
          ),
        )}
      </span>
    </div>
  );
}

/** How high the element is, and how many characters fit into a line of it. */
function useSize(element: { current: HTMLDivElement | null }): { height: number; columns: number } {
  const [size, setSize] = useState({ height: 600, columns: 120 });
  useEffect(() => {
    const node = element.current;
    if (!node) return undefined;
    const measure = () => setSize({ height: node.clientHeight, columns: node.clientWidth / measureCharacter(node) });
    const observer = new ResizeObserver(measure);
    observer.observe(node);
    measure();
    return () => observer.disconnect();
  }, []);
  return size;
}

function measureCharacter(node: HTMLElement): number {
  const probe = document.createElement("span");
  probe.textContent = "0".repeat(100);
  probe.className = "log-probe";
  node.append(probe);
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width || 8;
}
