/** A form to try a service, made from its OpenAPI document. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ServiceRecord } from "../../api/types";
import { CopyButton } from "../../components/code";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { useMay } from "../../session";
import { formatDuration } from "../../text/numbers";
import { type Field, findInput, getAt, type Json, listFields, makeSample, parseScalar, type Scalar, setAt } from "./form";
import { beautify, decodeBody, describeHttpStatus, encodeBody } from "./words";

interface Reply {
  status: number;
  text: string;
  seconds: number;
}

export function TryPart({ workspace, service }: { workspace: string; service: ServiceRecord }): JSX.Element {
  const isServing = service.serving > 0;
  const description = useResource(
    async (signal) =>
      isServing ? call("GET /api/v1/workspaces/{workspace}/services/{name}/description", { workspace, name: service.name }, { signal }) : null,
    [workspace, service.name, isServing],
  );
  if (!isServing) return <Empty title="The service can be tried once it answers requests." />;
  if (description.error) return <ErrorBox error={description.error} onRetry={description.reload} />;
  if (!description.value) return <Loading />;
  return <TryForm workspace={workspace} service={service} document={description.value} />;
}

function TryForm({ workspace, service, document }: { workspace: string; service: ServiceRecord; document: unknown }): JSX.Element {
  const mayHaveKeys = useMay(workspace, "contributor");
  const schema = findInput(document);
  const [value, setValue] = useState<Json>(() => makeSample(schema ?? { example: { data: [] } }));
  const [text, setText] = useState<string>();
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set());
  const [key, setKey] = useState("");
  const [isSending, setSending] = useState(false);
  const [reply, setReply] = useState<Reply>();
  const [error, setError] = useState<ApiError>();
  const needsKey = (service.served ?? service.spec).auth_enabled;
  const isRaw = text !== undefined || !schema;
  const raw = text ?? JSON.stringify(value, null, 2);
  const problem = isRaw ? explainJson(raw) : wrong.size ? "Some values do not fit their fields." : "";

  async function send(): Promise<void> {
    setSending(true);
    setError(undefined);
    try {
      const used = needsKey && mayHaveKeys && !key ? await readKey(workspace, service.name) : key;
      const began = performance.now();
      const body = encodeBody(isRaw ? raw : JSON.stringify(value));
      const answer = await call("POST /api/v1/workspaces/{workspace}/operations/services.score", { workspace, name: service.name, body, key: used });
      const seconds = (performance.now() - began) / 1000;
      const { status, body: answered } = answer.result as { status: number; body: string };
      setReply({ status, text: beautify(decodeBody(answered)), seconds });
    } catch (failure) {
      setReply(undefined);
      setError(failure instanceof ApiError ? failure : new ApiError(0, String(failure)));
    }
    setSending(false);
  }

  return (
    <form
      class="columns try"
      aria-label="Try the service"
      onSubmit={(event) => {
        event.preventDefault();
        if (!problem && !isSending) void send();
      }}
    >
      <section class="stack-small" aria-label="Request">
        <div class="row">
          <h2>Request</h2>
          <span class="spacer" />
          {schema && (
            <button
              type="button"
              disabled={isRaw && !!problem}
              onClick={() => {
                if (text === undefined) setText(raw);
                else {
                  setValue(JSON.parse(text) as Json);
                  setText(undefined);
                  setWrong(new Set());
                }
              }}
            >
              {isRaw ? "Edit in fields" : "Edit as JSON"}
            </button>
          )}
        </div>
        {!schema && <p class="muted small">The service does not describe its input. Its script can, with the decorators of inference-schema.</p>}
        {isRaw || !schema ? (
          <textarea
            class="raw mono"
            aria-label="Request as JSON"
            aria-invalid={!!problem}
            spellcheck={false}
            rows={Math.min(30, Math.max(8, raw.split("\n").length + 1))}
            value={raw}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        ) : (
          listFields(schema, value).map((field) => (
            <FieldEditor
              key={field.path.join("/")}
              field={field}
              value={getAt(value, field.path)}
              onChange={(next) => setValue((old) => setAt(old, field.path, next))}
              onValid={(place, isValid) =>
                setWrong((old) => {
                  if (old.has(place) === !isValid) return old;
                  const next = new Set(old);
                  if (isValid) next.delete(place);
                  else next.add(place);
                  return next;
                })
              }
            />
          ))
        )}
        {needsKey && !mayHaveKeys && (
          <label class="field">
            <span>Key of the service</span>
            <input type="password" autocomplete="off" required value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          </label>
        )}
        <div class="row">
          <button type="submit" class="primary" disabled={isSending || !!problem}>{isSending ? "Sending…" : "Send"}</button>
          {problem && <span class="problem" role="status">{problem}</span>}
        </div>
      </section>
      <section class="stack-small" aria-label="Answer" aria-live="polite">
        <div class="row"><h2>Answer</h2><span class="spacer" />{reply && <CopyButton text={reply.text} label="Copy the answer" />}</div>
        {error && <ErrorBox error={error} />}
        {!reply && !error && <p class="muted">Send the request to see what the service answers.</p>}
        {reply && (
          <>
            <p class="row">
              <span class={`status status-${reply.status < 400 ? "good" : "bad"}`}>{reply.status} {describeHttpStatus(reply.status)}</span>
              <span class="muted small">{formatDuration(reply.seconds)}, the way through the server included</span>
            </p>
            <pre class="answer" tabIndex={0} aria-label="Body of the answer">{reply.text}</pre>
          </>
        )}
      </section>
    </form>
  );
}

async function readKey(workspace: string, name: string): Promise<string> {
  const keys = await call("GET /api/v1/workspaces/{workspace}/services/{name}/keys", { workspace, name });
  return keys["primary"] ?? "";
}

function explainJson(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is not JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

interface EditorProps {
  field: Field;
  value: Json;
  onChange: (value: Json) => void;
  /** Says whether what was typed at a place fits. */
  onValid: (place: string, isValid: boolean) => void;
}

function FieldEditor({ field, value, onChange, onValid }: EditorProps): JSX.Element {
  const place = JSON.stringify(field.path);
  if (field.kind === "table") return <TableEditor field={field} value={value} onChange={onChange} onValid={onValid} />;
  return (
    <label class="field">
      <span>{field.label} <span class="muted small">{field.hint}</span></span>
      {field.kind === "choice" ? (
        <select value={JSON.stringify(value)} onChange={(event) => onChange(JSON.parse(event.currentTarget.value) as Json)}>
          {field.choices.map((each) => <option key={each} value={each}>{String(JSON.parse(each))}</option>)}
        </select>
      ) : field.kind === "json" ? (
        <TypedInput kind="json" value={value} onChange={onChange} onValid={(isValid) => onValid(place, isValid)} />
      ) : (
        <TypedInput kind={field.kind} value={value} onChange={onChange} onValid={(isValid) => onValid(place, isValid)} />
      )}
    </label>
  );
}

interface TypedProps {
  kind: Scalar | "json";
  value: Json;
  label?: string;
  onChange: (value: Json) => void;
  onValid: (isValid: boolean) => void;
}

/** An input whose text is kept while it is no value of its kind, so that one can type "-" before "-1". */
function TypedInput({ kind, value, label, onChange, onValid }: TypedProps): JSX.Element {
  const [typed, setTyped] = useState<string>();
  const shown = typed ?? (kind === "json" ? JSON.stringify(value) : value === null ? "" : String(value));
  const isValid = typed === undefined || parseTyped(kind, typed) !== undefined;
  useEffect(() => () => onValid(true), []);
  const change = (text: string) => {
    const next = parseTyped(kind, text);
    setTyped(text);
    onValid(next !== undefined);
    if (next !== undefined) onChange(next);
  };
  const named = label ? { "aria-label": label } : {};
  if (kind === "boolean") {
    return (
      <select {...named} value={String(value === true)} onChange={(event) => onChange(event.currentTarget.value === "true")}>
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    );
  }
  if (kind === "json") {
    return <textarea {...named} class="mono" rows={3} spellcheck={false} value={shown} aria-invalid={!isValid} onInput={(event) => change(event.currentTarget.value)} />;
  }
  return (
    <input
      {...named}
      type="text"
      inputMode={kind === "text" ? "text" : kind === "integer" ? "numeric" : "decimal"}
      value={shown}
      aria-invalid={!isValid}
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}

function parseTyped(kind: Scalar | "json", text: string): Json | undefined {
  if (kind !== "json") return parseScalar(kind, text);
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function TableEditor({ field, value, onChange, onValid }: EditorProps): JSX.Element {
  const rows = Array.isArray(value) ? value : [];
  // Inputs keep what was typed: removed rows must not leave theirs to the next one.
  const [removals, setRemovals] = useState(0);
  return (
    <fieldset class="field">
      <legend>{field.label} <span class="muted small">{rows.length} {rows.length === 1 ? "row" : "rows"}</span></legend>
      <div class="scroll" tabIndex={0} role="group" aria-label={`Rows of ${field.label}`}>
        <table class="cells">
          <thead>
            <tr>
              {field.columns.map((column) => <th key={column.key} scope="col">{column.label}</th>)}
              <th scope="col"><span class="hidden-label">Remove</span></th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={`${removals}/${index}`}>
                {field.columns.map((column) => (
                  <td key={column.key}>
                    <TypedInput
                      kind={column.kind}
                      label={`${field.label}, row ${index + 1}, ${column.label}`}
                      value={getAt(row, [column.key])}
                      onChange={(next) => onChange(setAt(value, [index, column.key], next))}
                      onValid={(isValid) => onValid(JSON.stringify([...field.path, index, column.key]), isValid)}
                    />
                  </td>
                ))}
                <td>
                  <button
                    type="button"
                    class="plain"
                    aria-label={`Remove row ${index + 1} of ${field.label}`}
                    disabled={rows.length === 1}
                    onClick={() => {
                      onChange(rows.filter((_, other) => other !== index));
                      setRemovals(removals + 1);
                    }}
                  >
                    ×
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <button type="button" class="plain small" onClick={() => onChange([...rows, structuredClone(rows[rows.length - 1] ?? {})])}>+ Add a row</button>
    </fieldset>
  );
}
