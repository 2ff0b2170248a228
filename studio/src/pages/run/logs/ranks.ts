/** Which logs are shown, as the address says it. Pure. */
import type { LogInfo } from "./reader";

/** More are not shown together without being asked for. */
const MOST_AT_FIRST = 8;

/** "0-2,7" as numbers; what cannot be read is left out. */
export function parseRanks(text: string, most: number): number[] {
  const found = new Set<number>();
  for (const part of text.split(",")) {
    const range = /^\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?$/.exec(part);
    if (!range) continue;
    const last = Math.min(Number(range[2] ?? range[1]), most);
    for (let rank = Number(range[1]); rank <= last; rank += 1) found.add(rank);
  }
  return [...found].sort((a, b) => a - b);
}

/** [0, 1, 2, 7] as "0-2,7". */
export function formatRanks(ranks: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const rank of [...new Set(ranks)].sort((a, b) => a - b)) {
    const last = parts[parts.length - 1];
    if (last && last[1] === rank - 1) last[1] = rank;
    else parts.push([rank, rank]);
  }
  return parts.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(",");
}

export interface Groups {
  /** The logs of the ranks now, by rank. */
  ranks: LogInfo[];
  /** Those of attempts that have failed, the newest first. */
  attempts: LogInfo[];
  system: LogInfo[];
}

export function groupLogs(infos: readonly LogInfo[]): Groups {
  const byRank = (a: LogInfo, b: LogInfo) => (a.rank ?? -1) - (b.rank ?? -1);
  return {
    ranks: infos.filter((each) => each.rank !== null && each.attempt === null).sort(byRank),
    attempts: infos.filter((each) => each.attempt !== null).sort((a, b) => b.attempt! - a.attempt! || byRank(a, b)),
    system: infos.filter((each) => each.rank === null && each.attempt === null),
  };
}

/** The logs to show: one by its name, or ranks ("all", "0-2,7"); by default all, or of very many the first. */
export function chooseLogs(groups: Groups, name: string, ranks: string): LogInfo[] {
  const all = [...groups.ranks, ...groups.attempts, ...groups.system];
  if (name) return all.filter((each) => each.name === name);
  const last = groups.ranks[groups.ranks.length - 1]?.rank ?? 0;
  const wanted = new Set(parseRanks(ranks, last));
  const chosen = groups.ranks.filter((each) => wanted.has(each.rank!));
  if (chosen.length) return chosen;
  if (ranks === "all" || groups.ranks.length <= MOST_AT_FIRST) {
    return groups.ranks.length ? groups.ranks : all.slice(0, 1);
  }
  return groups.ranks.slice(0, 1);
}

/** What a log is called on the page. */
export function nameLog(info: LogInfo, isOnly = false): string {
  const last = info.name.slice(info.name.lastIndexOf("/") + 1);
  const rank = info.rank === null ? last : isOnly ? "Output" : `Rank ${info.rank}`;
  return info.attempt === null ? rank : `${rank}, attempt ${info.attempt}`;
}
