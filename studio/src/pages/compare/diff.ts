/** A difference in unified format as rows for a page: line numbers on both sides, and how many equal lines lie between. */

export type LineKind = "same" | "added" | "removed";

export interface DiffLine {
  kind: LineKind;
  /** Number of the line on either side; undefined where the side does not have it. */
  left: number | undefined;
  right: number | undefined;
  text: string;
}

export interface Hunk {
  /** How many equal lines before it are not shown. */
  skipped: number;
  lines: DiffLine[];
}

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

export function parseUnified(text: string): Hunk[] {
  const hunks: Hunk[] = [];
  let left = 1;
  let right = 1;
  let lines: DiffLine[] | undefined;
  for (const line of text.split("\n")) {
    const head = HEAD.exec(line);
    if (head) {
      // A side without lines is said to begin before its first one.
      const start = Number(head[1]) + (head[2] === "0" ? 1 : 0);
      lines = [];
      hunks.push({ skipped: Math.max(0, start - left), lines });
      left = start;
      right = Number(head[3]) + (head[4] === "0" ? 1 : 0);
      continue;
    }
    if (!lines) continue;
    const [sign, rest] = [line[0], line.slice(1).replace(/\r$/, "")];
    if (sign === " ") lines.push({ kind: "same", left: left++, right: right++, text: rest });
    else if (sign === "-") lines.push({ kind: "removed", left: left++, right: undefined, text: rest });
    else if (sign === "+") lines.push({ kind: "added", left: undefined, right: right++, text: rest });
  }
  return hunks;
}

export interface Pair {
  left: DiffLine | undefined;
  right: DiffLine | undefined;
}

/** The lines of a hunk side by side: what was removed stands beside what was added in its place. */
export function pairLines(lines: readonly DiffLine[]): Pair[] {
  const pairs: Pair[] = [];
  let [removed, added]: [DiffLine[], DiffLine[]] = [[], []];
  const close = () => {
    for (let index = 0; index < Math.max(removed.length, added.length); index++) pairs.push({ left: removed[index], right: added[index] });
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === "removed") {
      if (added.length) close();
      removed.push(line);
    } else if (line.kind === "added") added.push(line);
    else {
      close();
      pairs.push({ left: line, right: line });
    }
  }
  close();
  return pairs;
}
