/** Channels and retention rules in words. Pure. */
import type { Channel, RetentionPlan } from "../../api/types";

export const EVENTS = ["completed", "failed", "canceled", "hung"] as const;
export type EventName = (typeof EVENTS)[number];
export type Kind = Channel["kind"];

export const KIND_NAMES: Readonly<Record<Kind, string>> = { webhook: "Webhook", email: "E-mail", command: "Command" };
export const ADDRESS_NAMES: Readonly<Record<Kind, string>> = { webhook: "URL", email: "E-mail addresses", command: "Command line" };
export const PLACEHOLDERS: Readonly<Record<Kind, string>> = {
  webhook: "https://example.org/hook",
  email: "ann@example.org, bob@example.org",
  command: "/usr/local/bin/tell-me",
};

/** Of which runs a channel tells. */
export function describeRuns(channel: Pick<Channel, "owner" | "experiment" | "only_chosen">, me: string): string {
  const whose = channel.owner === "" ? "all runs" : channel.owner === me ? "your runs" : `the runs of ${channel.owner}`;
  const where = channel.experiment ? ` of the experiment ${channel.experiment}` : "";
  return channel.only_chosen ? `${whose}${where} that name it` : `${whose}${where}`;
}

export function describeEvents(events: readonly EventName[]): string {
  return events.length === EVENTS.length ? "every end" : EVENTS.filter((each) => events.includes(each)).join(", ");
}

/** What a rule would do, in one sentence. */
export function describePlan(plan: Pick<RetentionPlan, "verdicts">): string {
  const removed = plan.verdicts.filter((each) => !each.is_kept).length;
  const kept = plan.verdicts.length - removed;
  const runs = (count: number) => `${count} ${count === 1 ? "run" : "runs"}`;
  return removed === 0 ? `Nothing would be deleted: all ${runs(kept)} are kept.` : `${runs(removed)} would be deleted, and ${runs(kept)} kept.`;
}
