/** Reading something from the server for as long as a component shows it. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./client";

export interface Resource<T> {
  /** The last answer; stays while a newer one is on its way. */
  value: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  /** Read it again. Calls while a request is on its way become one. */
  reload: () => void;
}

/**
 * Reads with `read` whenever one of `keys` changes. The request before is aborted, so that a late answer never
 * replaces a newer one. With other keys the old value stays on the screen until the new one is there.
 */
export function useResource<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, "reload">>({
    value: undefined,
    error: undefined,
    isLoading: true,
  });
  const current = useRef<{ controller: AbortController; isWanted: boolean } | undefined>(undefined);
  const latest = useRef(read);
  latest.current = read;

  const start = useCallback(() => {
    const controller = new AbortController();
    const mine = { controller, isWanted: false };
    current.current = mine;
    setState((old) => (old.isLoading ? old : { ...old, isLoading: true }));
    latest
      .current(controller.signal)
      .then(
        (value) => ({ value, error: undefined }),
        (error: unknown) => ({ error: toApiError(error) }),
      )
      .then((found) => {
        if (current.current !== mine) return;
        current.current = undefined;
        setState((old) => ({ ...old, ...found, isLoading: false }));
        if (mine.isWanted) start();
      });
  }, []);

  useEffect(() => {
    start();
    return () => {
      current.current?.controller.abort();
      current.current = undefined;
    };
  }, keys);

  const reload = useCallback(() => {
    if (current.current) current.current.isWanted = true;
    else start();
  }, []);
  return { ...state, reload };
}

function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, "the studio made a mistake", String(error));
}
