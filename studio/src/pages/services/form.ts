/** A form made from the OpenAPI document of a service: which fields it has, a sample, and changes of single values. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Path = readonly (string | number)[];

/** The parts of a schema that a form is made of. Documents come from services: anything may be in them. */
interface Schema {
  type?: unknown;
  format?: unknown;
  properties?: unknown;
  items?: unknown;
  enum?: unknown;
  example?: unknown;
  default?: unknown;
  description?: unknown;
  oneOf?: unknown;
  anyOf?: unknown;
  $ref?: unknown;
}

export type Scalar = "text" | "number" | "integer" | "boolean";

export interface Field {
  path: Path;
  label: string;
  hint: string;
  kind: Scalar | "choice" | "table" | "json";
  choices: string[];
  /** For a table: its columns, by name for rows that are objects and by number for rows that are lists. */
  columns: { key: string | number; label: string; kind: Scalar }[];
}

const DEEPEST = 8;
const MOST_CELLS = 2000;
const MOST_COLUMNS = 40;

/** The schema of what `POST /score` takes; undefined if the document does not say. */
export function findInput(document: unknown): Schema | undefined {
  const post = walk(document, ["paths", "/score", "post"]);
  const content = walk(post, ["requestBody", "content", "application/json", "schema"]);
  const schema = content === undefined ? undefined : resolve(document, content);
  return schema && Object.keys(schema).length ? schema : undefined;
}

/** A schema without references and choices: of several kinds of input, the first. */
export function resolve(document: unknown, schema: unknown, depth = 0): Schema {
  if (!isObject(schema) || depth > DEEPEST) return {};
  if (typeof schema["$ref"] === "string") {
    const path = schema["$ref"].replace(/^#\//, "").split("/");
    return resolve(document, walk(document, path), depth + 1);
  }
  for (const choice of [schema["oneOf"], schema["anyOf"]]) {
    if (Array.isArray(choice) && choice.length) return { ...resolve(document, choice[0], depth + 1), ...keepExample(schema) };
  }
  const found: Record<string, unknown> = { ...schema };
  if (isObject(schema["properties"])) {
    found["properties"] = Object.fromEntries(
      Object.entries(schema["properties"]).map(([name, each]) => [name, resolve(document, each, depth + 1)]),
    );
  }
  if (schema["items"] !== undefined) found["items"] = resolve(document, schema["items"], depth + 1);
  return found;
}

function keepExample(schema: Record<string, unknown>): Schema {
  return schema["example"] === undefined ? {} : { example: schema["example"] };
}

/** A value that fits a schema: its example, or one made of its types. */
export function makeSample(schema: Schema | undefined, depth = 0): Json {
  if (!schema || depth > DEEPEST) return {};
  if (schema.example !== undefined) return schema.example as Json;
  if (schema.default !== undefined) return schema.default as Json;
  if (Array.isArray(schema.enum) && schema.enum.length) return schema.enum[0] as Json;
  switch (schema.type) {
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    case "string":
      return schema.format === "date" ? "2026-01-31" : schema.format === "date-time" ? "2026-01-31T12:00:00Z" : "";
    case "array":
      return [makeSample(schema.items as Schema, depth + 1)];
    default: {
      const entries = isObject(schema.properties) ? Object.entries(schema.properties) : [];
      return Object.fromEntries(entries.map(([name, each]) => [name, makeSample(each as Schema, depth + 1)]));
    }
  }
}

/** The fields of a form, in the order of the schema. `value` says how long lists are. */
export function listFields(schema: Schema, value: Json, path: Path = [], depth = 0): Field[] {
  const kind = scalarOf(schema);
  const base = { path, label: path.map(String).join(" › ") || "Input", hint: describeType(schema), choices: [], columns: [] };
  if (Array.isArray(schema.enum)) return [{ ...base, kind: "choice", choices: schema.enum.map((each) => JSON.stringify(each)) }];
  if (kind) return [{ ...base, kind }];
  if (isObject(schema.properties) && depth < DEEPEST) {
    return Object.entries(schema.properties).flatMap(([name, each]) =>
      listFields(each as Schema, isObject(value) ? (value[name] as Json) : null, [...path, name], depth + 1),
    );
  }
  const columns = schema.type === "array" ? findColumns(schema.items as Schema, value) : [];
  return [columns.length ? { ...base, kind: "table", columns } : { ...base, kind: "json" }];
}

/** The columns of a list of rows: objects with simple values, or lists of simple values that are equally long. */
function findColumns(row: Schema | undefined, value: Json): Field["columns"] {
  if (!row || !Array.isArray(value)) return [];
  if (isObject(row.properties)) {
    const columns = Object.entries(row.properties).map(([key, each]) => ({ key, label: key, kind: scalarOf(each as Schema) }));
    const isSimple = columns.length <= MOST_COLUMNS && columns.length * value.length <= MOST_CELLS;
    return isSimple && columns.every((each) => each.kind) ? (columns as Field["columns"]) : [];
  }
  const kind = row.type === "array" ? scalarOf((row.items ?? {}) as Schema) : undefined;
  const width = Array.isArray(value[0]) ? value[0].length : 0;
  const isSimple = width > 0 && width <= MOST_COLUMNS && width * value.length <= MOST_CELLS;
  if (!kind || !isSimple || !value.every((each) => Array.isArray(each) && each.length === width)) return [];
  return Array.from({ length: width }, (_, key) => ({ key, label: String(key), kind }));
}

function scalarOf(schema: Schema): Scalar | undefined {
  switch (schema.type) {
    case "string":
      return "text";
    case "number":
    case "integer":
    case "boolean":
      return schema.type;
    default:
      return undefined;
  }
}

function describeType(schema: Schema): string {
  if (typeof schema.description === "string") return schema.description;
  const names: Readonly<Record<string, string>> = { string: "text", number: "number", integer: "whole number", boolean: "yes or no", array: "list", object: "object" };
  return names[String(schema.type)] ?? "JSON";
}

/** The value at a path; null where there is none. */
export function getAt(value: Json, path: Path): Json {
  let found: Json = value;
  for (const key of path) {
    if (Array.isArray(found)) found = found[Number(key)] ?? null;
    else if (isObject(found)) found = (Object.hasOwn(found, key) ? found[key] : null) as Json;
    else return null;
  }
  return found;
}

/** A copy of a value with another one at a path. */
export function setAt(value: Json, path: Path, next: Json): Json {
  const [key, ...rest] = path;
  if (key === undefined) return next;
  if (Array.isArray(value)) return value.map((each, index) => (index === Number(key) ? setAt(each, rest, next) : each));
  const old: { [name: string]: Json } = isObject(value) ? (value as { [name: string]: Json }) : {};
  // By entries, so that a name such as __proto__ becomes a property like any other.
  const entries = new Map(Object.entries(old));
  entries.set(String(key), setAt(entries.get(String(key)) ?? null, rest, next));
  return Object.fromEntries(entries);
}

/** What a person typed as a value of a kind; undefined if it is none. */
export function parseScalar(kind: Scalar, text: string): Json | undefined {
  if (kind === "text") return text;
  if (kind === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  const number = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(number) || (kind === "integer" && !Number.isInteger(number))) return undefined;
  return number;
}

function walk(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return undefined;
    found = found[name];
  }
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
