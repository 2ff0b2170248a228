/** Finding a text in lines. Pure. */
import { type Piece, plainText } from "./ansi";
import type { Line } from "./lines";

/** The offsets of the lines that contain a text, whatever its case. */
export function findLines(lines: readonly Line[], text: string): number[] {
  const wanted = text.toLowerCase();
  if (!wanted) return [];
  return lines.filter((line) => plainText(line.text).toLowerCase().includes(wanted)).map((line) => line.offset);
}

export interface Marked extends Piece {
  readonly isMatch: boolean;
}

/** The pieces of a line, cut where a text that is searched for begins and ends. */
export function markMatches(pieces: readonly Piece[], text: string): Marked[] {
  const wanted = text.toLowerCase();
  const whole = pieces.map((each) => each.text).join("");
  const lower = whole.toLowerCase();
  // A few letters change their length in lower case; then places would not be those of the text.
  if (!wanted || lower.length !== whole.length) return pieces.map((each) => ({ ...each, isMatch: false }));
  const cuts: number[] = [];
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length)) cuts.push(at, at + wanted.length);
  const found: Marked[] = [];
  let place = 0;
  let next = 0;
  for (const piece of pieces) {
    let begin = 0;
    while (begin < piece.text.length) {
      while (next < cuts.length && cuts[next]! <= place + begin) next += 1;
      const end = next < cuts.length ? Math.min(piece.text.length, cuts[next]! - place) : piece.text.length;
      found.push({ text: piece.text.slice(begin, end), style: piece.style, isMatch: next % 2 === 1 });
      begin = end;
    }
    place += piece.text.length;
  }
  return found;
}

/** Where a traceback begins: the last one, because what follows the first ones was handled or repeats it. */
export function findError(lines: readonly Line[]): number | undefined {
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    if (isTraceback(lines[index]!.text)) return lines[index]!.offset;
  }
  return undefined;
}

export const TRACEBACK = "Traceback (most recent call last)";

function isTraceback(text: string): boolean {
  return text.includes(TRACEBACK);
}
