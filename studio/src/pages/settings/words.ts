/** Rights and changes in words. */
import type { AuditEntryAnswer, TokenAnswer } from "../../api/types";

export const ROLES = ["reader", "contributor", "owner"] as const;
export type RoleName = (typeof ROLES)[number];

export const ROLE_MEANINGS: Readonly<Record<RoleName, string>> = {
  reader: "sees everything but keys and secrets",
  contributor: "also submits and cancels runs, registers and deploys",
  owner: "also deletes, and decides about members, quotas and targets",
};

/** What a token may do, in words. */
export function describeScope(token: Pick<TokenAnswer, "workspace" | "role" | "run_id">): string {
  if (token.run_id) return `the run ${token.run_id}`;
  const where = token.workspace ? `in ${token.workspace}` : "";
  if (token.role) return [`as ${token.role}`, where].filter(Boolean).join(" ");
  return where || "everything that its user may do";
}

export type TokenState = "valid" | "revoked" | "expired";

export function findState(token: Pick<TokenAnswer, "revoked_at" | "expires_at">, now: number): TokenState {
  if (token.revoked_at !== null) return "revoked";
  return token.expires_at !== null && Number(token.expires_at) <= now ? "expired" : "valid";
}

/** Days until something, in words: "in 3 days"; for what is past: "3 days ago". */
export function describeDays(then: number, now: number): string {
  const days = Math.round(Math.abs(then - now) / 86_400);
  const words = days === 0 ? "today" : days === 1 ? "1 day" : `${days} days`;
  return days === 0 ? words : then > now ? `in ${words}` : `${words} ago`;
}

/** What was done: the operation, or the method and the route without the part that is the same for all. */
export function describeChange(entry: Pick<AuditEntryAnswer, "operation" | "method" | "route">): string {
  const route = entry.route.replace(/^\/api\/v1(\/workspaces\/\{workspace\})?/, "");
  return entry.operation || `${entry.method} ${route}`;
}

export function describeResult(status: number | null): { text: string; tone: "good" | "bad" | "neutral" } {
  if (status === null) return { text: "not finished", tone: "bad" };
  if (status < 400) return { text: "done", tone: "good" };
  return { text: status === 403 || status === 401 ? "refused" : `error ${status}`, tone: status < 500 ? "neutral" : "bad" };
}

/** What was changed: the path without the part that is the same for all, and nothing if it only names the operation. */
export function describeObject(target: string): string {
  const rest = target.replace(/^\/api\/v1(\/workspaces\/[^/]+)?\/?/, "");
  return rest.startsWith("operations/") ? "" : rest;
}
