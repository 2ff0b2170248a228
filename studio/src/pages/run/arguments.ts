/** The arguments of a script as rows of a table, and back, without changing any of them. Pure. */
export interface ArgumentRow {
  /** "--lr"; empty for an argument without a name. */
  name: string;
  /** Undefined for a flag. */
  value: string | undefined;
  /** Whether name and value are one word, "--lr=0.1". */
  isJoined: boolean;
}

/** A word that begins with a dash and is not a negative number is a name. */
function isName(word: string): boolean {
  return /^--?[^\d\s=.]/.test(word);
}

export function parseArguments(words: readonly string[]): ArgumentRow[] {
  const rows: ArgumentRow[] = [];
  for (let n = 0; n < words.length; n++) {
    const word = words[n] ?? "";
    const equals = word.indexOf("=");
    if (!isName(word)) rows.push({ name: "", value: word, isJoined: false });
    else if (equals > 0) rows.push({ name: word.slice(0, equals), value: word.slice(equals + 1), isJoined: true });
    else {
      const next = words[n + 1];
      const hasValue = next !== undefined && !isName(next);
      rows.push({ name: word, value: hasValue ? next : undefined, isJoined: false });
      if (hasValue) n += 1;
    }
  }
  return rows;
}

/** The words again. A name whose value is undefined is a flag; a row that is empty is left out. */
export function formatArguments(rows: readonly ArgumentRow[]): string[] {
  return rows.flatMap(({ name, value, isJoined }) => {
    if (!name) return value === undefined ? [] : [value];
    if (value === undefined) return [name];
    return isJoined ? [`${name}=${value}`] : [name, value];
  });
}
