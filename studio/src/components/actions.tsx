/** Buttons that change something. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Confirmation } from "./dialog";
import { notify, notifyError } from "./feedback";

/** Waits for a change, says what was done or what went wrong, and whether it was done. */
export async function attempt(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work();
  } catch (error) {
    notifyError(error);
    return false;
  }
  if (done) notify(done);
  return true;
}

interface Props {
  /** What the button says. */
  label: string;
  /** The question, what it means, and the word on the button that does it. */
  title: string;
  text: string;
  action: string;
  done: string;
  work: () => Promise<unknown>;
  onDone?: () => void;
  /** What a screen reader says, where several buttons of a page have the same label. */
  name?: string;
  children?: ComponentChildren;
}

/** A button for something that cannot be undone: it asks first. */
export function DangerButton({ label, title, text, action, done, work, onDone, name }: Props): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [isBusy, setBusy] = useState(false);
  async function confirm(): Promise<void> {
    setBusy(true);
    const isDone = await attempt(work, done);
    setBusy(false);
    if (isDone) onDone?.();
  }
  return (
    <>
      <button type="button" class="quiet-danger" disabled={isBusy} aria-label={name ?? label} onClick={() => setAsking(true)}>
        {label}
      </button>
      {isAsking && (
        <Confirmation title={title} text={text} action={action} onConfirm={() => void confirm()} onClose={() => setAsking(false)} />
      )}
    </>
  );
}

/** Calls `look` every few seconds while the tab is visible, and when it becomes visible. */
export function usePolling(look: () => void, seconds: number): void {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    if (!seconds) return undefined;
    const lookIfVisible = () => {
      if (document.visibilityState === "visible") latest.current();
    };
    const timer = setInterval(lookIfVisible, seconds * 1000);
    document.addEventListener("visibilitychange", lookIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", lookIfVisible);
    };
  }, [seconds]);
}
