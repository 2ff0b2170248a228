/** Requests to the REST API, with the types of the table of routes. */
import type { Routes } from "./types";

export type Path = keyof Routes;
type Arguments<P extends Path> = (Routes[P] extends { path: infer A } ? A : unknown) &
  (Routes[P] extends { query: infer Q } ? Q : unknown) &
  (Routes[P] extends { body: infer B } ? B : unknown);
export type Answer<P extends Path> = Routes[P] extends { answer: infer R } ? R : unknown;

/** An error as the server words it, or what the browser says if the server cannot be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly headline: string,
    readonly reason = "",
    readonly hint = "",
    readonly requestId = "",
  ) {
    super(headline);
  }
}

let csrfToken = "";

/** What the header of changes has to have; known after `GET /api/v1/me`. */
export function setCsrfToken(token: string): void {
  csrfToken = token;
}

/** The path with its parameters filled in, and the arguments that are left. */
export function fillPath(
  template: string,
  given: Readonly<Record<string, unknown>>,
): { path: string; left: Record<string, unknown> } {
  const left = { ...given };
  const path = template.replace(/\{(\w+)(:path)?\}/g, (_, name: string, isPath?: string) => {
    const value = String(left[name]);
    delete left[name];
    return isPath ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
  return { path, left };
}

/** Arguments as a query: lists repeat their name, and what is undefined or null is left out. */
export function formatQuery(given: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) query.append(name, String(each));
    }
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** Call a route: `call("GET /api/v1/workspaces/{workspace}/runs", { workspace, limit: 100 })`. */
export async function call<P extends Path>(
  route: P,
  given: Arguments<P>,
  { signal }: { signal?: AbortSignal | undefined } = {},
): Promise<Answer<P>> {
  const [method, template] = splitRoute(route);
  const { path, left } = fillPath(template, given as Record<string, unknown>);
  const hasBody = method !== "GET" && method !== "DELETE";
  const headers: Record<string, string> = {};
  if (method !== "GET") {
    headers["X-CSRF-Token"] = csrfToken;
    headers["Idempotency-Key"] = makeKey();
  }
  if (hasBody) headers["Content-Type"] = "application/json";
  const response = await request(path + (hasBody ? "" : formatQuery(left)), {
    method,
    headers,
    ...(hasBody ? { body: JSON.stringify(left) } : {}),
    signal: signal ?? null,
  });
  return (await response.json()) as Answer<P>;
}

/** The address of a route that answers with something else than JSON: a file, a log, a stream. */
export function addressOf<P extends Path>(route: P, given: Arguments<P>): string {
  const { path, left } = fillPath(splitRoute(route)[1], given as Record<string, unknown>);
  return path + formatQuery(left);
}

/** A request whose errors are `ApiError`. Whoever is not signed in is sent to the page for that. */
export async function request(address: string, options: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "the server cannot be reached", String(error), "It is tried again when something changes.");
  }
  if (response.ok) return response;
  if (response.status === 401) signIn();
  throw await readError(response);
}

async function readError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { headline, cause, hint, request_id } = JSON.parse(text).error;
    return new ApiError(response.status, headline, cause ?? "", hint ?? "", request_id ?? "");
  } catch {
    return new ApiError(response.status, `the server answered with status ${response.status}`, text.slice(0, 300));
  }
}

/** Go to the page for signing in, and come back here afterwards. */
export function signIn(): void {
  const next = location.pathname + location.search;
  location.assign(`/login${next === "/" ? "" : `?next=${encodeURIComponent(next)}`}`);
}

function splitRoute(route: string): [string, string] {
  const space = route.indexOf(" ");
  return [route.slice(0, space), route.slice(space + 1)];
}

/** `crypto.randomUUID` needs TLS; this does not. */
function makeKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((each) => each.toString(16).padStart(2, "0")).join("");
}
