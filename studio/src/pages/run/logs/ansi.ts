/**
 * Colours of terminals: a line becomes pieces of text with the names of their styles. Pure.
 *
 * Whatever colour a program asks for, one of eight is shown that is legible in light and in dark. Each line begins
 * without colours. All other control sequences are left out.
 */

export interface Piece {
  readonly text: string;
  /** Names of CSS classes, with spaces between them; empty for plain text. */
  readonly style: string;
}

// CSI sequences, OSC sequences up to their end, other sequences of two characters, and control characters.
const SEQUENCE =
  // biome-ignore lint: control characters are what this looks for.
  /\x1b\[([0-9;:?<=>]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
const TAB = 8;

interface State {
  colour: number | undefined;
  background: number | undefined;
  marks: Set<string>;
}

const MARKS: Readonly<Record<number, string>> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const ENDS: Readonly<Record<number, readonly string[]>> = {
  22: ["bold", "dim"],
  23: ["italic"],
  24: ["underline"],
  27: ["inverse"],
  29: ["strike"],
};

/** The pieces of a line. A line without sequences is one piece. */
export function parseLine(line: string): Piece[] {
  if (!hasControls(line)) return line ? [{ text: expandTabs(line, 0), style: "" }] : [];
  const pieces: Piece[] = [];
  const state: State = { colour: undefined, background: undefined, marks: new Set() };
  let begin = 0;
  let column = 0;
  const add = (text: string) => {
    if (!text) return;
    const expanded = expandTabs(text, column);
    column += expanded.length;
    const style = nameStyle(state);
    const last = pieces[pieces.length - 1];
    if (last && last.style === style) pieces[pieces.length - 1] = { text: last.text + expanded, style };
    else pieces.push({ text: expanded, style });
  };
  for (const found of line.matchAll(SEQUENCE)) {
    add(line.slice(begin, found.index));
    begin = found.index + found[0].length;
    if (found[2] === "m") applyCodes(state, found[1] ?? "");
  }
  add(line.slice(begin));
  return pieces;
}

/** The text of a line as it is shown, without colours. */
export function plainText(line: string): string {
  const text = hasControls(line) ? line.replace(SEQUENCE, "") : line;
  return expandTabs(text, 0);
}

function hasControls(line: string): boolean {
  // biome-ignore lint: control characters are what this looks for.
  return /[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(line);
}

function expandTabs(text: string, column: number): string {
  if (!text.includes("\t")) return text;
  let shown = "";
  for (const part of text.split(/(\t)/)) shown += part === "\t" ? " ".repeat(TAB - ((column + shown.length) % TAB)) : part;
  return shown;
}

function applyCodes(state: State, text: string): void {
  const codes = text.split(/[;:]/).map((each) => (each === "" ? 0 : Number(each)));
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at]!;
    if (code === 38 || code === 48) {
      const { colour, length } = readColour(codes.slice(at + 1));
      if (code === 38) state.colour = colour;
      else state.background = colour;
      at += length;
    } else applyCode(state, code);
  }
}

function applyCode(state: State, code: number): void {
  if (code === 0) {
    state.colour = undefined;
    state.background = undefined;
    state.marks.clear();
  } else if (MARKS[code]) state.marks.add(MARKS[code]);
  else if (ENDS[code]) for (const each of ENDS[code]) state.marks.delete(each);
  else if (code === 39) state.colour = undefined;
  else if (code === 49) state.background = undefined;
  else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) state.colour = code % 10;
  else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) state.background = code % 10;
}

/** The colour after 38 or 48: `5;N` of a palette, or `2;R;G;B`. */
function readColour(codes: number[]): { colour: number | undefined; length: number } {
  if (codes[0] === 5) return { colour: nameOfPalette(codes[1] ?? 0), length: 2 };
  if (codes[0] === 2) return { colour: nameOfColour(codes[1] ?? 0, codes[2] ?? 0, codes[3] ?? 0), length: 4 };
  return { colour: undefined, length: 0 };
}

function nameOfPalette(number: number): number | undefined {
  if (!(number >= 0 && number <= 255)) return undefined;
  if (number < 16) return number % 8;
  if (number >= 232) return number < 244 ? 0 : 7;
  const cube = number - 16;
  const level = (value: number) => value * 51;
  return nameOfColour(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

/** The nearest of the eight: a channel counts if it is more than half of the strongest one. */
function nameOfColour(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  if (!(most >= 64)) return 0;
  const counts = (value: number) => (value > most * 0.6 ? 1 : 0);
  return counts(red) + 2 * counts(green) + 4 * counts(blue);
}

function nameStyle(state: State): string {
  const names = [...state.marks].sort();
  if (state.background !== undefined) names.push(`on-${COLOURS[state.background]}`);
  else if (state.colour !== undefined) names.push(COLOURS[state.colour]!);
  return names.map((each) => `ansi-${each}`).join(" ");
}
