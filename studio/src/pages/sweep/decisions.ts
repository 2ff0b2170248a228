/** What the policy of a sweep decided, read from the sweep's log, and in whole sentences. */

export interface Decision {
  trial: number;
  interval: number;
  isCut: boolean;
  /** "2026-11-17 12:00:00", UTC; empty if it is not known. */
  at: string;
  /** Why, as the policy writes it: "best 0.42 < 0.61 - 0.1 = 0.51". */
  why: string;
}

const LINE = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (.*)$/;
const DECISION = /^interval (\d+): run_(\d+) (.*): (cancelled|continues)$/;

/** All decisions in the text of a log, oldest first. Lines about anything else are skipped. */
export function parseDecisions(log: string): Decision[] {
  const found: Decision[] = [];
  for (const line of log.split("\n")) {
    const [, at, words] = LINE.exec(line) ?? [];
    const decision = words === undefined ? undefined : parseDecision(words, at);
    if (decision) found.push(decision);
  }
  return found;
}

/** One decision, as a trial that was cut has it. */
export function parseDecision(words: string, at = ""): Decision | undefined {
  const [, interval, trial, why, verdict] = DECISION.exec(words) ?? [];
  if (interval === undefined || trial === undefined || why === undefined) return undefined;
  return { trial: Number(trial), interval: Number(interval), isCut: verdict === "cancelled", at, why };
}

/** The same decision once: the log may say again what a trial has. Newest first. */
export function joinDecisions(fromLog: readonly Decision[], fromTrials: readonly Decision[]): Decision[] {
  const known = new Map(fromTrials.map((each) => [keyOf(each), each]));
  for (const each of fromLog) known.set(keyOf(each), each);
  const all = [...known.values()];
  // Those without a time are the oldest: the end of a long log has the newest.
  return all.map((each, index) => ({ each, index })).sort((a, b) => b.each.at.localeCompare(a.each.at) || b.index - a.index).map(({ each }) => each);
}

function keyOf(decision: Decision): string {
  return `${decision.trial}/${decision.interval}`;
}

/** "Cut trial 7 at interval 3: 0.42 is worse than the best 0.61 by more than the slack 0.1." */
export function describeDecision({ trial, interval, isCut, why }: Decision): string {
  return `${isCut ? "Cut" : "Kept"} trial ${trial} at interval ${interval}: ${explain(why)}.`;
}

const BANDIT = /^best (\S+|no number) (<|>|<=|>=) (\S+|no number) ([-+]) (\S+) = (\S+|no number)$/;
const FACTOR = /^best (\S+|no number) (<|>|<=|>=) (\S+|no number)([/*])\(1\+(\S+)\) = (\S+|no number)$/;
const MEDIAN = /^best (\S+|no number) (<|>|<=|>=) (\S+), the median of (\d+) averages$/;
const RANK = /^best (\S+|no number) is number (\d+) of (\d+), (.*)$/;

function explain(why: string): string {
  const amount = BANDIT.exec(why);
  if (amount) {
    const [, own, sign = "", best, , slack, limit] = amount;
    if (isWorse(sign)) return `${own} is worse than the best ${best} by more than the slack ${slack} (limit ${limit})`;
    return `${own} is within the slack ${slack} of the best ${best} (limit ${limit})`;
  }
  const factor = FACTOR.exec(why);
  if (factor) {
    const [, own, sign = "", best, operator, slack, limit] = factor;
    const formula = `${best} ${operator === "/" ? "÷" : "×"} (1 + ${slack})`;
    if (isWorse(sign)) return `${own} is worse than the limit ${limit}, which is the best ${best} with the slack factor ${slack} (${formula})`;
    return `${own} is within the limit ${limit}, which is the best ${best} with the slack factor ${slack} (${formula})`;
  }
  const median = MEDIAN.exec(why);
  if (median) {
    const [, own, sign = "", limit, count] = median;
    return `its best ${own} is ${isWorse(sign) ? "worse than" : "not worse than"} ${limit}, the median of the averages of ${count} trials`;
  }
  const rank = RANK.exec(why);
  if (rank) return `its best ${rank[1]} ranks ${rank[2]} of ${rank[3]}, ${rank[4]}`;
  return why;
}

function isWorse(sign: string): boolean {
  return sign === "<" || sign === ">";
}
