/**
 * Server-sent events while the tab is visible.
 *
 * Browsers allow six connections to a host over all tabs, so a hidden tab closes its streams, and opens them again
 * where they ended when it is looked at.
 */
import { useEffect, useRef, useState } from "preact/hooks";

export type Handlers = Readonly<Record<string, (data: unknown, id: string) => void>>;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
/** Streams end now and then by themselves; the browser opens them again after a second. */
const LOST_AFTER = 2000;

/** Streams that are not connected, although they should be. */
const lost = new Set<object>();
const watchers = new Set<() => void>();

function note(stream: object, isConnected: boolean): void {
  if (lost.has(stream) !== isConnected) return;
  if (isConnected) lost.delete(stream);
  else lost.add(stream);
  for (const each of watchers) each();
}

/** Whether a stream of the page has been without connection for a while. */
export function useIsLost(): boolean {
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    let timer = 0;
    const watch = () => {
      clearTimeout(timer);
      if (!lost.size) setLost(false);
      else timer = window.setTimeout(() => setLost(lost.size > 0), LOST_AFTER);
    };
    watch();
    watchers.add(watch);
    return () => {
      clearTimeout(timer);
      watchers.delete(watch);
    };
  }, []);
  return isLost;
}

/** Follows a stream until the returned function is called. `resume` gives the address that continues after an id. */
export function follow(
  address: string,
  handlers: Handlers,
  { resume }: { resume?: (id: string) => string } = {},
): () => void {
  let source: EventSource | undefined;
  let timer = 0;
  let pause = FIRST_PAUSE;
  let lastId = "";
  let isEnded = false;
  const stream = {};

  function close(): void {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  function open(): void {
    close();
    if (isEnded || document.visibilityState === "hidden") return;
    const opened = new EventSource(lastId && resume ? resume(lastId) : address);
    source = opened;
    opened.onopen = () => {
      pause = FIRST_PAUSE;
      note(stream, true);
    };
    opened.onerror = () => {
      note(stream, false);
      if (opened.readyState !== EventSource.CLOSED) return;
      timer = window.setTimeout(open, pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    };
    for (const [kind, handle] of Object.entries(handlers)) {
      opened.addEventListener(kind, (event) => {
        lastId = (event as MessageEvent<string>).lastEventId || lastId;
        handle(JSON.parse((event as MessageEvent<string>).data), lastId);
      });
    }
  }

  document.addEventListener("visibilitychange", open);
  open();
  return () => {
    isEnded = true;
    note(stream, true);
    document.removeEventListener("visibilitychange", open);
    close();
  };
}

export interface Changes {
  version: string;
  /** False if changes may be missing, and what is shown has to be read again. */
  whole: boolean;
  runs: unknown[];
}

/** Calls `handle` for every change of runs in a workspace. */
export function useChanges(workspace: string, handle: (changes: Changes) => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => {
    if (!workspace) return undefined;
    const address = `/api/v1/workspaces/${encodeURIComponent(workspace)}/changes`;
    return follow(address, {
      changes: (data) => {
        const changes = data as Changes;
        // The first event of each connection has no runs and says where the feed begins. What was read before may lack
        // what happened until then.
        latest.current(changes.runs.length ? changes : { ...changes, whole: false });
      },
    });
  }, [workspace]);
}
