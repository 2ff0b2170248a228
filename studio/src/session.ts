/** Who uses the studio, and what they may do. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { MeAnswer } from "./api/types";

const LEVELS: Readonly<Record<string, number>> = { reader: 1, contributor: 2, owner: 3 };

export type Role = "reader" | "contributor" | "owner";

export const Session = createContext<MeAnswer | undefined>(undefined);

/** Whether somebody has at least a role in a workspace. The server decides; this only hides what it would refuse. */
export function hasRole(me: MeAnswer | undefined, workspace: string, role: Role): boolean {
  if (!me) return false;
  if (me.is_admin) return true;
  const held = Math.max(LEVELS[me.roles[workspace] ?? ""] ?? 0, LEVELS[me.roles["*"] ?? ""] ?? 0);
  return held >= (LEVELS[role] ?? 0);
}

export function useMay(workspace: string, role: Role): boolean {
  return hasRole(useContext(Session), workspace, role);
}
