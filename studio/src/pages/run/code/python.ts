/** Python in pieces that can be coloured. Small on purpose: it knows words, texts, numbers and comments. Pure. */

export type Kind = "" | "keyword" | "string" | "comment" | "number" | "decorator" | "name";

export interface Token {
  readonly text: string;
  readonly kind: Kind;
}

const KEYWORDS: ReadonlySet<string> = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield match case").split(" "),
);
/** These are keywords only at the beginning of a line. */
const SOFT: ReadonlySet<string> = new Set(["match", "case"]);

const TOKEN = new RegExp(
  [
    "(?<comment>#[^\\n]*)",
    // A text with three quotes, or up to the end of its line; without an end, up to the end of the file.
    "(?<string>(?:\\b[rRbBfFuUtT]{1,2})?(?:\"\"\"(?:[^\\\\]|\\\\[^])*?(?:\"\"\"|$(?![^]))|'''(?:[^\\\\]|\\\\[^])*?(?:'''|$(?![^]))" +
      "|\"(?:[^\"\\\\\\n]|\\\\[^])*\"?|'(?:[^'\\\\\\n]|\\\\[^])*'?))",
    "(?<number>\\b(?:0[xX][\\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\\d[\\d_]*(?:\\.[\\d_]*)?(?:[eE][+-]?\\d+)?[jJ]?)|(?<![\\w\\]).])\\.\\d[\\d_]*(?:[eE][+-]?\\d+)?)",
    "(?<decorator>@[\\w.]+)",
    "(?<word>[\\p{L}_][\\p{L}\\p{N}_]*)",
  ].join("|"),
  "gmu",
);

/** All of the text, in pieces. */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let end = 0;
  let before = "";
  const add = (piece: string, kind: Kind) => {
    if (!piece) return;
    const last = tokens[tokens.length - 1];
    if (last && last.kind === kind) tokens[tokens.length - 1] = { text: last.text + piece, kind };
    else tokens.push({ text: piece, kind });
  };
  for (const found of text.matchAll(TOKEN)) {
    add(text.slice(end, found.index), "");
    end = found.index + found[0].length;
    const kind = chooseKind(found, before, text);
    add(found[0], kind);
    if (found.groups?.word) before = found[0];
  }
  add(text.slice(end), "");
  return tokens;
}

function chooseKind(found: RegExpMatchArray, before: string, text: string): Kind {
  const groups = found.groups ?? {};
  for (const kind of ["comment", "string", "number"] as const) if (groups[kind] !== undefined) return kind;
  if (groups.decorator !== undefined) return isFirst(found.index ?? 0, text) ? "decorator" : "";
  const word = groups.word ?? "";
  const isAttribute = text[(found.index ?? 0) - 1] === ".";
  if (KEYWORDS.has(word) && !isAttribute) return SOFT.has(word) && !isSoft(found, text) ? "" : "keyword";
  return before === "def" || before === "class" ? "name" : "";
}

/** Whether there is nothing but space before a place in its line. */
function isFirst(place: number, text: string): boolean {
  let at = place - 1;
  while (at >= 0 && (text[at] === " " || text[at] === "\t")) at -= 1;
  return at < 0 || text[at] === "\n";
}

/** Whether `match` or `case` begins a statement: it is first in its line, and a colon ends the line. */
function isSoft(found: RegExpMatchArray, text: string): boolean {
  const place = found.index ?? 0;
  if (!isFirst(place, text)) return false;
  const end = text.indexOf("\n", place);
  return /^(?:match|case)\s+[^\s=].*:\s*(?:#.*)?$/.test(text.slice(place, end < 0 ? undefined : end));
}
