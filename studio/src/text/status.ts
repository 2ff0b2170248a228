/** States of runs in the words of a person, and how they are coloured. */
export type Tone = "good" | "bad" | "active" | "waiting" | "neutral";

const TONES: Readonly<Record<string, Tone>> = {
  Completed: "good",
  Failed: "bad",
  Canceled: "neutral",
  CancelRequested: "waiting",
  Running: "active",
  Finalizing: "active",
  Starting: "active",
  Preparing: "waiting",
  Provisioning: "waiting",
  Queued: "waiting",
  NotStarted: "waiting",
  NotResponding: "bad",
  Paused: "waiting",
};

const ACTIVE: ReadonlySet<Tone> = new Set(["active", "waiting"]);

/** `NotStarted` becomes "Not started". */
export function describeStatus(status: string): { tone: Tone; label: string } {
  const words = status.replace(/([a-z])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`);
  return { tone: TONES[status] ?? "neutral", label: words };
}

/** Whether a run in this state may still change by itself. */
export function isActive(status: string): boolean {
  return ACTIVE.has(describeStatus(status).tone) || status === "NotResponding";
}
