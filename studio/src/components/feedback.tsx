/** What is shown instead of content: an error, nothing, or that something is on its way; and short notices. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { useIsLost } from "../api/events";

export function ErrorBox({ error, onRetry }: { error: ApiError; onRetry?: () => void }): JSX.Element {
  return (
    <div class="error-box" role="alert">
      <strong>{error.headline}</strong>
      {error.reason && <p>{error.reason}</p>}
      {error.hint && <p class="muted">{error.hint}</p>}
      {error.requestId && <p class="muted small">Request {error.requestId}</p>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Loading(): JSX.Element {
  return (
    <div class="loading" role="status">
      Loading…
    </div>
  );
}

interface Notice {
  id: number;
  text: string;
  isError: boolean;
}

let notices: Notice[] = [];
let nextId = 1;
let showNotices: ((all: Notice[]) => void) | undefined;

/** Show a short text at the edge of the page for a few seconds; errors stay longer. */
export function notify(text: string, { isError = false } = {}): void {
  const notice = { id: nextId++, text, isError };
  notices = [...notices.slice(-3), notice];
  showNotices?.(notices);
  setTimeout(() => {
    notices = notices.filter((each) => each.id !== notice.id);
    showNotices?.(notices);
  }, isError ? 12_000 : 5_000);
}

/** Say what went wrong with an action of the user. */
export function notifyError(error: unknown): void {
  if (error instanceof ApiError) {
    notify([error.headline, error.reason, error.hint].filter(Boolean).join(". "), { isError: true });
  } else notify(String(error), { isError: true });
}

export function Notices(): JSX.Element {
  const [all, setAll] = useState(notices);
  useEffect(() => {
    showNotices = setAll;
    return () => {
      showNotices = undefined;
    };
  }, []);
  const isLost = useIsLost();
  return (
    <div class="notices" role="status" aria-live="polite">
      {isLost && <p class="notice notice-error">The connection is lost. It is tried again…</p>}
      {all.map((each) => (
        <p key={each.id} class={each.isError ? "notice notice-error" : "notice"}>
          {each.text}
        </p>
      ))}
    </div>
  );
}
