import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatAge, formatDate, formatDuration, toNumber } from "../text/numbers";

/** Renders again every `seconds`, while the tab is visible. */
export function useNow(seconds = 1): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") setNow(Date.now() / 1000);
    }, seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return now;
}

/** "5 min ago", with the exact time on hover. */
export function Age({ at }: { at: unknown }): JSX.Element | null {
  const now = useNow(15);
  const seconds = toNumber(at);
  if (Number.isNaN(seconds)) return null;
  return (
    <time dateTime={new Date(seconds * 1000).toISOString()} title={formatDate(seconds)}>
      {formatAge(seconds, now)}
    </time>
  );
}

/** How long something has taken, or takes so far. */
export function Duration({ from, to }: { from: unknown; to: unknown }): JSX.Element | null {
  const now = useNow();
  const begin = toNumber(from);
  if (from === null || Number.isNaN(begin)) return null;
  const end = to === null || to === undefined ? now : toNumber(to);
  return <span>{formatDuration(Math.max(0, end - begin))}</span>;
}
