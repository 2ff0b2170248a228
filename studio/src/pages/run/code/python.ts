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
    "(?<decorator>(?<=^[ \\t]*)@[\\w.]+)",
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
  for (const kind of ["comment", "string", "number", "decorator"] as const) if (groups[kind] !== undefined) return kind;
  const word = groups.word ?? "";
  const isAttribute = text[(found.index ?? 0) - 1] === ".";
  if (KEYWORDS.has(word) && !isAttribute) return SOFT.has(word) && !isSoft(found, text) ? "" : "keyword";
  return before === "def" || before === "class" ? "name" : "";
}

/** Whether `match` or `case` begins a statement: it is first in its line, and a colon ends the line. */
function isSoft(found: RegExpMatchArray, text: string): boolean {
  const begin = text.lastIndexOf("\n", (found.index ?? 0) - 1) + 1;
  const end = text.indexOf("\n", found.index);
  const line = text.slice(begin, end < 0 ? undefined : end);
  return text.slice(begin, found.index).trim() === "" && /^\s*(?:match|case)\s+[^=].*:\s*(?:#.*)?$/.test(line);
}
