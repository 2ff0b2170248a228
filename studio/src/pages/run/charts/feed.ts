/**
 * The metrics of a run while its page is open: which there are, and the points of those that are on the screen.
 *
 * Each update asks for the summaries of all metrics and, by one request, for the new points of the metrics in view.
 */
import type { Curve, MetricSummary } from "../../../api/types";
import { append, curveToPoints, NO_POINTS, type Points, thin } from "../../../charts/points";

/** Points of a line that are asked for, and kept; a chart is not wider than that. */
export const MOST_POINTS = 2000;
const FRESH = 100;
const SHORTEST_PAUSE = 100;

export interface RankLine {
  rank: number | null;
  /** Values that this rank logged in all. */
  count: number;
  points: Points;
}

export interface Source {
  readSummaries: () => Promise<MetricSummary[]>;
  /** New points of metrics, from the given indexes on. */
  readCurves: (since: Readonly<Record<string, number>>) => Promise<Curve[]>;
  pause: (milliseconds: number) => Promise<void>;
  onError: (error: unknown) => void;
}

/** Does something again and again when it is asked to, never twice at once. What is asked meanwhile causes one more time. */
class Repetition {
  private isBusy = false;
  private isAsked = false;
  isClosed = false;

  constructor(
    private readonly source: Source,
    private readonly work: () => Promise<void>,
    private readonly measurePause: () => number,
  ) {}

  ask(): void {
    this.isAsked = true;
    if (!this.isBusy) void this.run();
  }

  private async run(): Promise<void> {
    this.isBusy = true;
    // Charts that appear together ask together.
    await this.source.pause(0);
    while (this.isAsked && !this.isClosed) {
      this.isAsked = false;
      try {
        await this.work();
      } catch (error) {
        if (!this.isClosed) this.source.onError(error);
      }
      await this.source.pause(this.measurePause());
    }
    this.isBusy = false;
  }
}

export class MetricFeed {
  summaries: readonly MetricSummary[] | undefined;
  private readonly lines = new Map<string, readonly RankLine[]>();
  private readonly wanted = new Map<string, number>();
  private readonly listeners = new Set<() => void>();
  private readonly summarizing: Repetition;
  private readonly drawing: Repetition;

  constructor(private readonly source: Source) {
    // A run with thousands of metrics is asked for them less often: the answer is large.
    this.summarizing = new Repetition(source, () => this.renewSummaries(), () => Math.max(SHORTEST_PAUSE, this.summaries?.length ?? 0));
    this.drawing = new Repetition(source, () => this.renewLines(), () => SHORTEST_PAUSE);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** What is known of a metric; the same list as long as nothing is new. */
  linesOf(name: string): readonly RankLine[] | undefined {
    return this.lines.get(name);
  }

  /** A chart of this metric is on the screen until the returned function is called. */
  want(name: string): () => void {
    this.wanted.set(name, (this.wanted.get(name) ?? 0) + 1);
    this.drawing.ask();
    return () => {
      const left = (this.wanted.get(name) ?? 1) - 1;
      if (left > 0) this.wanted.set(name, left);
      else this.wanted.delete(name);
    };
  }

  close(): void {
    this.summarizing.isClosed = this.drawing.isClosed = true;
    this.listeners.clear();
  }

  /** Something may be new. */
  update(): void {
    this.summarizing.ask();
    this.drawing.ask();
  }

  private tell(): void {
    for (const each of [...this.listeners]) each();
  }

  private async renewSummaries(): Promise<void> {
    this.summaries = await this.source.readSummaries();
    this.tell();
  }

  private async renewLines(): Promise<void> {
    const names = [...this.wanted.keys()];
    let isNew = false;
    for (let at = 0; at < names.length; at += FRESH) {
      const since = Object.fromEntries(names.slice(at, at + FRESH).map((name) => [name, nextIndex(this.lines.get(name))]));
      const curves = await this.source.readCurves(since);
      for (const [name, mine] of groupCurves(curves)) {
        const before = this.lines.get(name);
        const after = addCurves(before, mine);
        isNew ||= after !== before;
        this.lines.set(name, after);
      }
    }
    if (isNew) this.tell();
  }
}

/** The index after the last known one. */
export function nextIndex(lines: readonly RankLine[] | undefined): number {
  return 1 + Math.max(-1, ...(lines ?? []).map((line) => line.points.index.at(-1) ?? -1));
}

function groupCurves(curves: readonly Curve[]): Map<string, Curve[]> {
  const found = new Map<string, Curve[]>();
  for (const curve of curves) {
    const mine = found.get(curve.name);
    if (mine) mine.push(curve);
    else found.set(curve.name, [curve]);
  }
  return found;
}

/** The lines with what is new; the same list if nothing is. */
export function addCurves(lines: readonly RankLine[] | undefined, curves: readonly Curve[]): readonly RankLine[] {
  if (lines && curves.every((curve) => curve.index.length === 0)) return lines;
  const found = new Map((lines ?? []).map((line) => [line.rank, line]));
  for (const curve of curves) {
    const before = found.get(curve.rank);
    const points = append(before?.points ?? NO_POINTS, curveToPoints(curve));
    const kept = points.index.length > 2 * MOST_POINTS ? thin(points, MOST_POINTS) : points;
    found.set(curve.rank, { rank: curve.rank, count: curve.count, points: kept });
  }
  return [...found.values()].sort((a, b) => (a.rank ?? -1) - (b.rank ?? -1));
}
