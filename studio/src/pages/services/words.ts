/** Services in words, and code that calls them. */
import type { ServiceRecord } from "../../api/types";
import type { Tone } from "../../text/status";
import type { Json } from "./form";

const TONES: Readonly<Record<string, Tone>> = { Healthy: "good", Unhealthy: "bad", Failed: "bad", Transitioning: "waiting", Deleting: "waiting" };
const MEANINGS: Readonly<Record<string, string>> = {
  Healthy: "It answers requests.",
  Unhealthy: "It does not answer although it should. It is started again and again.",
  Failed: "The last deployment failed.",
  Transitioning: "It is being deployed.",
  Deleting: "It is being deleted.",
};

export function describeState(service: ServiceRecord): { tone: Tone; text: string } {
  const isServingOld = service.state === "Failed" && service.serving > 0;
  const more = isServingOld ? " The version before still answers." : "";
  return { tone: TONES[service.state] ?? "neutral", text: (MEANINGS[service.state] ?? "") + more };
}

export function isOnlyLocal(service: ServiceRecord): boolean {
  return service.host === "127.0.0.1" || service.host === "::1" || service.host === "localhost";
}

/** Where requests are sent to; `server` is the host of this page, for services that listen everywhere. */
export function formatUri(service: ServiceRecord, server: string): string {
  if (!service.port) return "";
  const host = isOnlyLocal(service) ? "localhost" : ["0.0.0.0", "::"].includes(service.host) ? server : service.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${service.port}/score`;
}

/** A text for a POSIX shell, whatever is in it. */
export function quoteShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function writeCurl(uri: string, hasKey: boolean, body: Json): string {
  const lines = [`curl ${uri}`, "-H 'Content-Type: application/json'"];
  if (hasKey) lines.push("-H \"Authorization: Bearer $KEY\"");
  lines.push(`-d ${quoteShell(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** A text as Python writes it: JSON in single quotes, where that needs no escapes. */
export function quotePython(text: string): string {
  return /['\\]/.test(text) ? JSON.stringify(text) : `'${text}'`;
}

export function writePython(workspace: string, server: string, name: string, body: Json): string {
  return [
    "from azureml.core import Webservice, Workspace",
    "",
    `workspace = Workspace.get(${JSON.stringify(workspace)}, server=${JSON.stringify(server)})`,
    `service = Webservice(workspace, ${JSON.stringify(name)})`,
    `print(service.run(${quotePython(JSON.stringify(body))}))`,
  ].join("\n");
}

/** A new key: 24 random bytes as text that is safe in headers and addresses. */
export function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
}

export function encodeBody(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = "";
  for (let start = 0; start < bytes.length; start += 8192) binary += String.fromCharCode(...bytes.subarray(start, start + 8192));
  return btoa(binary);
}

export function decodeBody(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)));
}

/** JSON with indentation; what is not JSON stays as it is. */
export function beautify(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function describeHttpStatus(status: number): string {
  const words: Readonly<Record<number, string>> = {
    200: "OK", 400: "The request is wrong", 401: "The key is missing or wrong", 408: "The request took too long to arrive",
    413: "The request is too large", 500: "The scoring script failed", 503: "Too many requests at once", 504: "The scoring script took too long",
  };
  return words[status] ?? "";
}
