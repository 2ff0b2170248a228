/** A tree of files, of which only the rows on the screen exist. Arrow keys move, open and close. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type FileItem, listRows, makeTree, type TreeRow } from "./tree";
import { formatBytes } from "../text/numbers";

const ROW = 26;
const SPARE = 10;
const NONE: ReadonlySet<string> = new Set();

interface Props {
  label: string;
  files: readonly FileItem[];
  filter: string;
  chosen: string;
  onChoose: (name: string) => void;
}

export function FileTree({ label, files, filter, chosen, onChoose }: Props): JSX.Element {
  // What is open with a filter says nothing about what is open without one.
  const isFiltered = filter.trim() !== "";
  const [changes, setChanges] = useState<Readonly<Record<string, ReadonlySet<string>>>>({});
  const changed = changes[String(isFiltered)] ?? NONE;
  const tree = useMemo(() => makeTree(files, filter), [files, filter]);
  const rows = useMemo(() => listRows(tree, changed, chosen, isFiltered), [tree, changed, chosen, isFiltered]);
  const element = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [active, setActive] = useState("");
  const height = element.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + SPARE);
  const place = rows.findIndex((each) => each.path === active);

  useEffect(() => {
    const node = element.current;
    const index = rows.findIndex((each) => each.path === chosen);
    if (!node || index < 0) return;
    if (index * ROW < node.scrollTop || (index + 1) * ROW > node.scrollTop + node.clientHeight) node.scrollTop = (index - 3) * ROW;
  }, [chosen]);

  const toggle = (path: string) => {
    const next = new Set(changed);
    if (!next.delete(path)) next.add(path);
    setChanges({ ...changes, [String(isFiltered)]: next });
  };
  const open = (row: TreeRow) => {
    setActive(row.path);
    if (row.isFolder) toggle(row.path);
    else onChoose(row.path);
  };
  const move = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    const node = element.current;
    if (!row || !node) return;
    setActive(row.path);
    const at = rows.indexOf(row) * ROW;
    if (at < node.scrollTop) node.scrollTop = at;
    else if (at + ROW > node.scrollTop + node.clientHeight) node.scrollTop = at + ROW - node.clientHeight;
  };
  const parentOf = (path: string) => path.slice(0, path.lastIndexOf("/", path.length - 2) + 1);
  const handleKey = (event: KeyboardEvent) => {
    const row = rows[place];
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(place + 1),
      ArrowUp: () => move(place < 0 ? 0 : place - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      Enter: () => row && open(row),
      " ": () => row && open(row),
      ArrowRight: () => row?.isFolder && (row.isOpen ? move(place + 1) : toggle(row.path)),
      ArrowLeft: () => {
        if (row?.isFolder && row.isOpen) toggle(row.path);
        else if (row) move(rows.findIndex((each) => each.isFolder && each.path === parentOf(row.path)));
      },
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  return (
    <div
      ref={element}
      class="tree"
      role="tree"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={place >= first && place < last ? `tree-row-${place}` : undefined}
      onKeyDown={handleKey}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="tree-rows" role="none" style={{ height: `${rows.length * ROW}px` }}>
        {rows.slice(first, last).map((row, index) => (
          <div
            key={row.path}
            id={`tree-row-${first + index}`}
            class={row.path === active ? "tree-row tree-active" : "tree-row"}
            role="treeitem"
            aria-level={row.depth + 1}
            aria-selected={row.path === chosen}
            {...(row.isFolder ? { "aria-expanded": row.isOpen } : {})}
            style={{ transform: `translateY(${(first + index) * ROW}px)`, paddingLeft: `${0.5 + row.depth * 1.1}rem` }}
            title={row.path}
            onClick={() => open(row)}
          >
            <span class="tree-mark" aria-hidden="true">{row.isFolder ? (row.isOpen ? "▾" : "▸") : ""}</span>
            <span class="tree-label">{row.label}</span>
            <span class="muted small">{row.isFolder && !row.isOpen ? `${row.count} · ${formatBytes(row.size)}` : row.isFolder ? "" : formatBytes(row.size)}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
