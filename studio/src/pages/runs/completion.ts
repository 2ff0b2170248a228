/** What may come next in a filter that is being written. The server reads filters; this only helps to write them. */
import { BUILT_IN, formatField, quote, quoteName } from "./fields";

export interface Wanted {
  kind: "field" | "operator" | "value" | "link";
  /** What has been written of it, and where that begins. */
  prefix: string;
  start: number;
  /** Of a value: the field it is compared with. */
  field: string;
}

export interface Suggestion {
  /** What replaces the part that has been written. */
  text: string;
  note: string;
}

export interface Names {
  arguments: readonly string[];
  metrics: readonly string[];
  tags: readonly string[];
  properties: readonly string[];
}

const TOKEN = /\s+|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[()]|,|!~\*|!~|~\*|<>|[<>=!]=|[<>=~]|[^\s"'(),<>=!~]+|./g;
const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "~", "in (", "not in (", "is set", "is not set"];
const COMPARISONS = new Set(["=", "==", "!=", "<>", "<", "<=", ">", ">=", "~", "~*", "!~", "!~*"]);
const TIMES = ["today", "yesterday", "-1h", "-24h", "-7d", "-2w"];
const TIME_FIELDS = new Set(["created", "started", "ended", "archived"]);
const MOST = 12;

/** What is being written at the end of `text` (the part of a filter before the caret). */
export function findWanted(text: string): Wanted {
  const tokens = splitTokens(text);
  let open: { word: string; start: number } | undefined;
  const last = tokens.at(-1);
  if (last && !/^[(),]$/.test(last.word) && !COMPARISONS.has(last.word) && last.end === text.length) open = tokens.pop();
  let state: Wanted["kind"] = "field";
  let field = "";
  for (let index = 0; index < tokens.length; index += 1) {
    const word = tokens[index]?.word ?? "";
    const lower = word.toLowerCase();
    if (state === "field") {
      if (lower === "not" || word === "(") continue;
      field = joinParts(tokens, index);
      while (isJoined(tokens, index)) index += 1;
      state = "operator";
    } else if (state === "operator") {
      if (COMPARISONS.has(word) || word === "(") state = "value";
      else if (lower === "set") state = "link";
    } else if (state === "value") {
      const next = tokens[index + 1]?.word;
      if (word === "," || word === "(") continue;
      if (next !== ",") state = isInList(tokens, index) ? "value" : "link";
    } else if (lower === "and" || lower === "or") state = "field";
  }
  // A name that has a quoted part is one field: metric."val loss".
  const before = tokens.at(-1);
  if (open && state === "operator" && before && before.end === open.start) {
    const start = findStart(tokens);
    return { kind: "field", prefix: text.slice(start), start, field: "" };
  }
  const start = open?.start ?? text.length;
  return { kind: state, prefix: open?.word ?? "", start, field };
}

interface Token {
  word: string;
  start: number;
  end: number;
}

function splitTokens(text: string): Token[] {
  return [...text.matchAll(TOKEN)]
    .map((match) => ({ word: match[0], start: match.index, end: match.index + match[0].length }))
    .filter((each) => each.word.trim() !== "");
}

function isJoined(tokens: readonly Token[], index: number): boolean {
  const here = tokens[index];
  const next = tokens[index + 1];
  return !!here && !!next && here.end === next.start && /^["'\w.-]/.test(next.word) && !COMPARISONS.has(next.word);
}

function joinParts(tokens: readonly Token[], index: number): string {
  let text = tokens[index]?.word ?? "";
  for (let at = index; isJoined(tokens, at); at += 1) text += tokens[at + 1]?.word ?? "";
  return text;
}

function findStart(tokens: readonly Token[]): number {
  let index = tokens.length - 1;
  while (index > 0 && isJoined(tokens, index - 1)) index -= 1;
  return tokens[index]?.start ?? 0;
}

/** Whether the brackets of a list are still open at a token. */
function isInList(tokens: readonly Token[], index: number): boolean {
  for (let at = index; at > 0; at -= 1) {
    const word = tokens[at]?.word;
    if (word === ")") return false;
    if (word === "(") return tokens[at - 1]?.word.toLowerCase() === "in";
  }
  return false;
}

/** Suggestions, best first. `values` are those of the field, if a value is wanted. */
export function suggest(wanted: Wanted, names: Names, values: readonly string[]): Suggestion[] {
  switch (wanted.kind) {
    case "field":
      return suggestFields(wanted.prefix, names);
    case "operator":
      return choose(OPERATORS.map((text) => ({ text: `${text} `, note: "" })), wanted.prefix);
    case "link":
      return choose(["and ", "or "].map((text) => ({ text, note: "" })), wanted.prefix);
    default: {
      const bare = wanted.prefix.replace(/^["']/, "");
      const known = TIME_FIELDS.has(wanted.field) ? TIMES : values;
      return choose(known.map((text) => ({ text: `${quoteValue(text)} `, note: "" })), bare, true);
    }
  }
}

/** A value as the language reads it: texts with marks in quotes. */
export function quoteValue(text: string): string {
  return /^[\w.:+-]+$/.test(text) ? text : quote(text);
}

function suggestFields(prefix: string, names: Names): Suggestion[] {
  const bare = prefix.replace(/^(arg|metric|tag|property)\./, "").replace(/^"/, "");
  const found: Suggestion[] = [
    ...Object.entries(BUILT_IN)
      .filter(([name]) => !["tags", "waiting_for"].includes(name))
      .map(([name, label]) => ({ text: name, note: label.toLowerCase() === name ? "" : label })),
    ...names.arguments.map((name) => ({ text: name in BUILT_IN ? formatField("argument", name) : quoteName(name), note: "argument" })),
    ...names.metrics.map((name) => ({ text: formatField("metric", name), note: "metric" })),
    ...names.tags.map((name) => ({ text: formatField("tag", name), note: "tag" })),
    ...names.properties.map((name) => ({ text: formatField("property", name), note: "property" })),
  ];
  const chosen = choose(found.map((each) => ({ ...each, text: `${each.text} ` })), prefix);
  const others = bare ? choose(found.map((each) => ({ ...each, text: `${each.text} ` })), bare, true) : [];
  const all = [...new Map([...chosen, ...others].map((each) => [each.text, each])).values()].slice(0, MOST);
  if (/^[\w-]{2,}$/.test(prefix) && !chosen.length) {
    all.push({ text: `name ~* ${quote(`*${prefix}*`)} `, note: "names that contain it" });
  }
  return all;
}

/** Those that begin with the prefix, then those that contain it. What is written already is no suggestion. */
function choose(all: readonly Suggestion[], prefix: string, anywhere = false): Suggestion[] {
  const wanted = prefix.toLowerCase();
  const begin = all.filter((each) => each.text.toLowerCase().startsWith(wanted));
  const contain = anywhere ? all.filter((each) => each.text.toLowerCase().indexOf(wanted) > 0) : [];
  return [...begin, ...contain].filter((each) => each.text.trim() !== prefix).slice(0, MOST);
}
