/** Keys of a page: registered while a component is shown, listed in the help that `?` opens. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Dialog } from "./dialog";

export interface Shortcut {
  /** As `KeyboardEvent.key` has them: `j`, `ArrowDown`, `/`. Any of them will do. */
  keys: readonly string[];
  label: string;
  run: () => void;
}

interface Group {
  title: string;
  shortcuts: readonly Shortcut[];
}

const groups: { current: Group }[] = [];
const EVERYWHERE = "Everywhere";

/** Shortcuts of a part of a page, while it is shown: `useShortcuts("Runs", [{ keys: ["j"], label: "Next run", run }])`. */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const group = useRef<Group>({ title, shortcuts });
  group.current = { title, shortcuts };
  useEffect(() => {
    groups.push(group);
    return () => void groups.splice(groups.indexOf(group), 1);
  }, []);
}

/** Whether a key belongs to what has the focus, or to a dialog, and not to the page. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return true;
  if (document.querySelector("dialog[open]")) return true;
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(target.type);
  return target.isContentEditable || target.matches("textarea, select");
}

/** Listens to all keys, and shows the help. Once, in the frame of the pages. */
export function Keyboard(): JSX.Element | null {
  const [isShown, setIsShown] = useState(false);
  useShortcuts(EVERYWHERE, [{ keys: ["?"], label: "Show these keys", run: () => setIsShown(true) }]);
  useEffect(() => {
    function listen(event: KeyboardEvent): void {
      if (isTaken(event)) return;
      // What was registered last is nearest to what is shown.
      for (const group of [...groups].reverse()) {
        const found = group.current.shortcuts.find((each) => each.keys.includes(event.key));
        if (!found) continue;
        event.preventDefault();
        found.run();
        return;
      }
    }
    document.addEventListener("keydown", listen);
    return () => document.removeEventListener("keydown", listen);
  }, []);
  if (!isShown) return null;
  return (
    <Dialog title="Keyboard" onClose={() => setIsShown(false)}>
      {[...groups].reverse().map((group) => <Keys key={group.current.title} group={group.current} />)}
    </Dialog>
  );
}

function Keys({ group }: { group: Group }): JSX.Element {
  return (
    <section>
      <h3>{group.title}</h3>
      <dl class="keys">
        {group.shortcuts.map((each) => (
          <div key={each.label}>
            <dt>{each.keys.map((key) => <kbd key={key}>{KEY_NAMES[key] ?? key}</kbd>)}</dt>
            <dd>{each.label}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const KEY_NAMES: Readonly<Record<string, string>> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  " ": "Space",
};
