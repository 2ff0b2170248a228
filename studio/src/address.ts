/**
 * The address is the state: a link shows a colleague the same view, and "back" works.
 *
 * Paths are `/w/<workspace>/<page>/...`; parameters that have their default are left out of the query.
 */
import { useEffect, useState } from "preact/hooks";

export interface Place {
  workspace: string;
  page: string;
  rest: string[];
  query: URLSearchParams;
}

/** What an address shows. Segments that cannot be decoded are taken as they are. */
export function parsePlace(path: string, search: string): Place {
  const segments = path.split("/").filter(Boolean).map(decode);
  const query = new URLSearchParams(search);
  if (segments[0] !== "w") return { workspace: "", page: "", rest: [], query };
  return { workspace: segments[1] ?? "", page: segments[2] ?? "", rest: segments.slice(3), query };
}

/** The address of a page. Parameters that are undefined or empty are left out. */
export function formatAddress(
  workspace: string,
  page: string,
  rest: readonly string[] = [],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const path = ["w", workspace, page, ...rest].filter((each) => each !== "").map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter((each): each is [string, string] => !!each[1]);
  const text = new URLSearchParams(given).toString();
  return `/${path}${text ? `?${text}` : ""}`;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

type Listener = () => void;
const listeners = new Set<Listener>();

function notify(): void {
  for (const each of [...listeners]) each();
}

if (typeof window !== "undefined") window.addEventListener("popstate", notify);

/** Go to an address of this site; with `replace`, "back" does not come here again. */
export function navigate(address: string, { replace = false } = {}): void {
  const target = new URL(address, location.href);
  if (target.origin !== location.origin) return;
  if (target.href === location.href) return;
  const isOtherPage = target.pathname !== location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  if (isOtherPage) window.scrollTo(0, 0);
  notify();
}

/** What the address shows now; renders again when it changes. */
export function usePlace(): Place {
  const [, render] = useState(0);
  useEffect(() => {
    const listener = () => render((count) => count + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return parsePlace(location.pathname, location.search);
}

/** Change parameters of the address; undefined or the empty text removes one. */
export function setParameters(changes: Readonly<Record<string, string | undefined>>, { replace = true } = {}): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  navigate(location.pathname + (text ? `?${text}` : "") + location.hash, { replace });
}

/** One parameter of the address, and how to change it. `fallback` is what stands for its absence. */
export function useParameter(name: string, fallback = ""): [string, (value: string) => void] {
  const place = usePlace();
  const value = place.query.get(name) ?? fallback;
  return [value, (next) => setParameters({ [name]: next === fallback ? undefined : next })];
}
