/** Searching logs: here if all of a log is here, on the server otherwise. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../../../api/client";
import { findLines } from "./matches";
import type { LogReader, RunAddress } from "./reader";

export interface Match {
  readonly identity: string;
  readonly offset: number;
  /** The number of the line, if the server has counted. */
  readonly number: number | undefined;
}

export interface SearchState {
  readonly matches: readonly Match[];
  readonly isSearching: boolean;
  /** Whether there may be more than those. */
  readonly hasMore: boolean;
}

const MOST = 1000;
const PAUSE = 250;

interface Found {
  matches: Match[];
  /** Up to where the log was searched. */
  end: number;
  isOver: boolean;
}

/** The lines that contain a text, log by log. */
export function useSearch(run: RunAddress, readers: readonly LogReader[], text: string, version: number): SearchState {
  const [found, setFound] = useState<ReadonlyMap<string, Found>>(new Map());
  const wanted = useLate(text.trim() ? text : "", PAUSE);
  const names = readers.map((each) => each.info.identity).join();
  const areOpen = readers.every((each) => each.isOpen);
  useEffect(() => {
    setFound(new Map());
    if (!wanted || !areOpen) return undefined;
    const controller = new AbortController();
    for (const reader of readers.filter((each) => !each.isWhole)) {
      void searchServer(run, reader, wanted, controller.signal, (result) =>
        setFound((old) => new Map(old).set(reader.info.identity, result)),
      ).catch(() => undefined);
    }
    return () => controller.abort();
  }, [wanted, names, areOpen]);

  return useMemo(() => {
    if (!wanted) return { matches: [], isSearching: false, hasMore: false };
    const matches: Match[] = [];
    let isSearching = wanted !== text;
    let hasMore = false;
    for (const reader of readers) {
      const { identity } = reader.info;
      const remote = found.get(identity);
      const end = remote ? remote.end : reader.isWhole ? 0 : Infinity;
      if (remote) matches.push(...remote.matches);
      if (end === Infinity) isSearching = true;
      if (remote && !remote.isOver) hasMore = true;
      const { lines, incomplete } = reader.lines;
      // What was written since the server has searched.
      const own = findLines(incomplete ? [...lines, incomplete] : lines, wanted).filter((offset) => offset >= end);
      const first = reader.lines.firstNumber;
      for (const offset of own.slice(0, MOST)) {
        matches.push({ identity, offset, number: first === undefined ? undefined : first + reader.lines.find(offset) });
      }
    }
    return { matches, isSearching, hasMore };
  }, [wanted, text, found, version, names]);
}

async function searchServer(
  run: RunAddress,
  reader: LogReader,
  text: string,
  signal: AbortSignal,
  tell: (found: Found) => void,
): Promise<void> {
  const matches: Match[] = [];
  let start = 0;
  let lines = 0;
  for (;;) {
    const { name, identity, size } = reader.info;
    const answer = await call(
      "GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs/{name}/search",
      { ...run, name, identity, text, start, limit: MOST - matches.length },
      { signal },
    );
    for (const each of answer.matches) {
      // A progress bar's line begins where its first state was written.
      matches.push({ identity, offset: each.offset, number: lines + each.line + 1 });
    }
    lines += answer.lines;
    const isOver = answer.next === null;
    tell({ matches: [...matches], end: answer.next ?? size, isOver });
    if (isOver || matches.length >= MOST) return;
    start = answer.next!;
  }
}

/** Where the last line with a text is; the server's answers are followed to the end of the log. */
export async function findLast(run: RunAddress, reader: LogReader, text: string): Promise<Match | undefined> {
  let last: Match | undefined;
  await searchServerToEnd(run, reader, text, (match) => {
    last = match;
  });
  return last;
}

async function searchServerToEnd(run: RunAddress, reader: LogReader, text: string, tell: (match: Match) => void): Promise<void> {
  let start: number | null = 0;
  let lines = 0;
  while (start !== null) {
    const { name, identity } = reader.info;
    const answer: { matches: { offset: number; line: number }[]; next: number | null; lines: number } = await call(
      "GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs/{name}/search",
      { ...run, name, identity, text, start, limit: MOST },
    );
    const last = answer.matches[answer.matches.length - 1];
    if (last) tell({ identity, offset: last.offset, number: lines + last.line + 1 });
    lines += answer.lines;
    start = answer.next;
  }
}

/** The value, once it has not changed for a while. */
function useLate<T>(value: T, pause: number): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLate(value), pause);
    return () => clearTimeout(timer);
  }, [value, pause]);
  return late;
}
