/** Not more often than needed: changes of busy workspaces come many times a second. */
import { useEffect, useRef } from "preact/hooks";

const PAUSE = 2000;

/** Calls `handle` at once, and then at most every two seconds; the last call is never lost. */
export function usePaced(handle: () => void): () => void {
  const latest = useRef(handle);
  latest.current = handle;
  const state = useRef({ timer: 0, isWanted: false });
  useEffect(() => () => clearTimeout(state.current.timer), []);
  const call = useRef(() => {
    const mine = state.current;
    if (mine.timer) {
      mine.isWanted = true;
      return;
    }
    latest.current();
    mine.timer = window.setTimeout(() => {
      mine.timer = 0;
      if (mine.isWanted) {
        mine.isWanted = false;
        call.current();
      }
    }, PAUSE);
  });
  return call.current;
}
