/**
 * Server-sent events while the tab is visible.
 *
 * Browsers allow six connections to a host over all tabs, so a hidden tab closes its streams, and opens them again
 * where they ended when it is looked at.
 */
import { useEffect, useRef } from "preact/hooks";

export type Handlers = Readonly<Record<string, (data: unknown, id: string) => void>>;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

/** Follows a stream until the returned function is called. `resume` gives the address that continues after an id. */
export function follow(
  address: string,
  handlers: Handlers,
  { resume, onState }: { resume?: (id: string) => string; onState?: (isConnected: boolean) => void } = {},
): () => void {
  let source: EventSource | undefined;
  let timer = 0;
  let pause = FIRST_PAUSE;
  let lastId = "";
  let isEnded = false;

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
      onState?.(true);
    };
    opened.onerror = () => {
      onState?.(false);
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
    let isFirst = true;
    return follow(address, {
      changes: (data) => {
        // The first event of each connection says where it begins. What happened before it may be missing.
        const changes = data as Changes;
        latest.current(isFirst ? changes : changes.runs.length === 0 ? { ...changes, whole: false } : changes);
        isFirst = false;
      },
    });
  }, [workspace]);
}
