/** Many metrics in groups by the first part of their names, and how they are searched. Pure. */

export interface Named {
  name: string;
}

/** The prefix of metrics that say what the machine did, apart from what the script logged. */
export const SYSTEM = "system";

export interface Group<T extends Named> {
  /** "train" for "train/loss"; empty for names without a slash. */
  prefix: string;
  items: T[];
}

/** Groups in the order in which they appear; names without a group come first, and what the machine did last. */
export function groupByPrefix<T extends Named>(items: readonly T[]): Group<T>[] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const slash = item.name.indexOf("/");
    const prefix = slash > 0 ? item.name.slice(0, slash) : "";
    const mine = groups.get(prefix);
    if (mine) mine.push(item);
    else groups.set(prefix, [item]);
  }
  const found = [...groups].map(([prefix, mine]) => ({ prefix, items: mine }));
  const rankOf = ({ prefix }: Group<T>) => (prefix === SYSTEM ? 2 : prefix ? 1 : 0);
  return found.sort((a, b) => rankOf(a) - rankOf(b));
}

/** Whether a name has all words of a query, in any order; `/.../` is a regular expression. */
export function makeMatcher(query: string): (name: string) => boolean {
  const text = query.trim();
  const expression = /^\/(.+)\/$/.exec(text);
  if (expression?.[1]) {
    try {
      const compiled = new RegExp(expression[1], "i");
      return (name) => compiled.test(name);
    } catch {
      // Not complete yet: it is searched for as it stands.
    }
  }
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (name) => words.every((word) => name.toLowerCase().includes(word));
}
