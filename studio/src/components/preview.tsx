/**
 * What is in a file: text, a table, a picture, a notebook, a model. All of it is shown as text and cells, never run.
 * Only pages (HTML, SVG) are drawn by the browser, in a frame that reaches neither this page nor the network.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useParameter } from "../address";
import type { ApiError } from "../api/client";
import { useResource } from "../api/resource";
import type { CellOutput, FilePreview, NotebookCell, OnnxSummary, TableColumn } from "../api/types";
import { formatBytes, formatNumber } from "../text/numbers";
import { CopyButton } from "./code";
import { ErrorBox, Loading, notifyError } from "./feedback";

export interface PreviewSource {
  /** Changes with the file. */
  readonly key: string;
  readonly name: string;
  read: (start: number, signal?: AbortSignal) => Promise<FilePreview>;
  /** The file itself. */
  readonly download: string;
  /** A picture as the server has checked it. */
  readonly picture: string;
  /** An HTML or SVG file as the server sends it for a sandboxed frame. */
  readonly page?: string;
}

export interface SizedSource extends PreviewSource {
  readonly size: number;
}

/** `colour` may show a line of text in pieces; it gets all lines. */
export function Preview({ source, colour }: { source: PreviewSource; colour?: (text: string) => ComponentChildren[] }): JSX.Element {
  const first = useResource((signal) => source.read(0, signal), [source.key]);
  const [more, setMore] = useState<{ key: string; parts: FilePreview[] }>({ key: "", parts: [] });
  const [isReading, setReading] = useState(false);
  const [view] = useParameter("view", "page");
  if (first.error && !first.value) return <ErrorBox error={first.error as ApiError} onRetry={first.reload} />;
  if (!first.value) return <Loading />;
  const parts = [first.value, ...(more.key === source.key ? more.parts : [])];
  const last = parts[parts.length - 1]!;
  const readMore = async () => {
    setReading(true);
    try {
      const part = await source.read(last.next!);
      setMore({ key: source.key, parts: [...parts.slice(1), part] });
    } catch (error) {
      notifyError(error);
    } finally {
      setReading(false);
    }
  };
  return (
    <div class="preview">
      {first.value.notice && <p class="muted">{first.value.notice}</p>}
      <Content source={source} parts={parts} colour={colour} />
      {last.next !== null && !(view === "page" && isPage(source)) && (
        <button type="button" disabled={isReading} onClick={() => void readMore()}>Show more</button>
      )}
    </div>
  );
}

interface ContentProps {
  source: PreviewSource;
  parts: readonly FilePreview[];
  colour: ((text: string) => ComponentChildren[]) | undefined;
}

function Content({ source, parts, colour }: ContentProps): JSX.Element | null {
  const [first] = parts;
  if (!first) return null;
  if (first.kind === "image") return first.notice ? null : <Picture address={source.picture} name={source.name} />;
  if (first.kind === "text") {
    const text = <Text name={source.name} text={parts.map((each) => each.text).join("")} isWhole={parts[parts.length - 1]!.next === null} colour={colour} />;
    return isPage(source) ? <PageOrSource source={source} text={text} /> : text;
  }
  if (first.table) {
    const rows = parts.flatMap((each) => each.table?.rows ?? []);
    return <Table columns={first.table.columns} rows={rows} count={first.table.row_count} hidden={first.table.hidden_columns} />;
  }
  if (first.notebook) {
    return <Notebook cells={parts.flatMap((each) => each.notebook?.cells ?? [])} count={first.notebook.cell_count} />;
  }
  return first.onnx ? <Onnx summary={first.onnx} /> : null;
}

function isPage({ page, name }: PreviewSource): boolean {
  return !!page && /\.(html?|svg)$/i.test(name);
}

function PageOrSource({ source, text }: { source: PreviewSource; text: JSX.Element }): JSX.Element {
  const [view, setView] = useParameter("view", "page");
  return (
    <>
      <div class="row">
        <span class="buttons-joined" role="group" aria-label="View">
          {["page", "source"].map((each) => (
            <button key={each} type="button" aria-pressed={view === each} onClick={() => setView(each)}>{each === "page" ? "Page" : "Source"}</button>
          ))}
        </span>
        {view === "page" && <span class="muted small">It is shown in a sandbox and loads nothing from the network.</span>}
      </div>
      {view === "page" ? <iframe class="preview-page" title={`Page ${source.name}`} src={source.page} sandbox="allow-scripts" /> : text}
    </>
  );
}

function Picture({ address, name }: { address: string; name: string }): JSX.Element {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return <p class="muted">It cannot be shown as a picture.</p>;
  return <img class="preview-picture" src={address} alt={name} onError={() => setBroken(true)} />;
}

interface TextProps {
  name: string;
  text: string;
  isWhole: boolean;
  colour: ((text: string) => ComponentChildren[]) | undefined;
}

/** Colouring costs memory for every piece, so long texts stay plain. */
const LONGEST_COLOURED = 300_000;

function Text({ name, text, isWhole, colour }: TextProps): JSX.Element {
  const pretty = isWhole && name.toLowerCase().endsWith(".json") ? formatJson(text) : undefined;
  const [isPretty, setPretty] = useState(true);
  const shown = isPretty && pretty !== undefined ? pretty : text;
  if (!text) return <p class="muted">The file is empty.</p>;
  const body = shown.endsWith("\n") ? shown.slice(0, -1) : shown;
  const count = body.split("\n").length;
  const numbers = Array.from({ length: count }, (_, index) => index + 1).join("\n");
  const pieces = colour && body.length <= LONGEST_COLOURED ? colour(body) : body;
  return (
    <>
      <div class="row">
        {pretty !== undefined && pretty !== text && (
          <button type="button" aria-pressed={isPretty} onClick={() => setPretty(!isPretty)}>Formatted</button>
        )}
        <CopyButton text={shown} label={`Copy ${name}`} />
      </div>
      <div class="source" role="region" aria-label={`Contents of ${name}`} tabIndex={0}>
        <pre class="source-numbers" aria-hidden="true">{numbers}</pre>
        <pre class="source-text"><code>{pieces}</code></pre>
      </div>
    </>
  );
}

function formatJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return undefined;
  }
}

interface TableProps {
  columns: readonly TableColumn[];
  rows: readonly (readonly (string | null)[])[];
  count: number | null;
  hidden: number;
}

function Table({ columns, rows, count, hidden }: TableProps): JSX.Element {
  const said = [
    count === null ? `${rows.length} rows shown` : `${rows.length} of ${formatNumber(count)} rows`,
    `${columns.length + hidden} columns`,
    hidden ? `${hidden} columns are not shown` : "",
  ];
  return (
    <>
      <p class="muted small">{said.filter(Boolean).join(" · ")}</p>
      <div class="preview-table" role="region" aria-label="Rows" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((each, index) => (
                <th key={index} scope="col">
                  {each.name}
                  {each.type && <span class="muted small"> {each.type}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column}>{cell === null ? <span class="muted">null</span> : cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Notebook({ cells, count }: { cells: readonly NotebookCell[]; count: number }): JSX.Element {
  return (
    <ol class="notebook" aria-label="Cells">
      {cells.map((cell, index) => (
        <li key={index} class={`cell cell-${cell.kind}`}>
          <span class="muted small cell-number">{cell.kind === "code" ? `[${cell.number ?? " "}]` : ""}</span>
          <div class="cell-body">
            {cell.source && <pre>{cell.source}</pre>}
            {cell.outputs.map((each, place) => <Output key={place} output={each} />)}
          </div>
        </li>
      ))}
      {cells.length === 0 && <li class="muted">The notebook has no cells{count ? " that can be shown" : ""}.</li>}
    </ol>
  );
}

function Output({ output }: { output: CellOutput }): JSX.Element {
  if (output.kind === "image") return <BytesPicture data={output.data} type={output.media_type} />;
  return <pre class={output.kind === "error" ? "cell-output cell-error" : "cell-output"}>{output.text}</pre>;
}

/** A picture that is part of a notebook. It is drawn: the policy of the page allows no addresses with data in them. */
function BytesPicture({ data, type }: { data: string; type: string }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let isGone = false;
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    createImageBitmap(new Blob([bytes], { type })).then(
      (bitmap) => {
        const node = canvas.current;
        if (isGone || !node) return;
        node.width = bitmap.width;
        node.height = bitmap.height;
        node.getContext("2d")?.drawImage(bitmap, 0, 0);
      },
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [data, type]);
  return <canvas ref={canvas} class="preview-picture" role="img" aria-label="Picture that the cell has drawn" />;
}

function Onnx({ summary }: { summary: OnnxSummary }): JSX.Element {
  return (
    <div class="stack">
      <p>
        {formatNumber(summary.weights)} {summary.weights === 1 ? "weight" : "weights"} in {formatNumber(summary.nodes)} {summary.nodes === 1 ? "node" : "nodes"} · opset {summary.opset}
        {summary.producer && ` · written by ${summary.producer}`}
      </p>
      <Tensors title="Inputs" tensors={summary.inputs} />
      <Tensors title="Outputs" tensors={summary.outputs} />
      <table class="preview-small">
        <thead><tr><th scope="col">Operator</th><th scope="col" class="number">Count</th></tr></thead>
        <tbody>
          {summary.operators.map((each) => (
            <tr key={each.operator}><td>{each.operator}</td><td class="number">{each.count}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Tensors({ title, tensors }: { title: string; tensors: OnnxSummary["inputs"] }): JSX.Element {
  return (
    <table class="preview-small">
      <thead><tr><th scope="col">{title}</th><th scope="col">Type</th><th scope="col">Shape</th></tr></thead>
      <tbody>
        {tensors.map((each) => (
          <tr key={each.name}><td>{each.name}</td><td>{each.type}</td><td class="mono">{each.shape ? `[${each.shape.join(", ")}]` : "any"}</td></tr>
        ))}
      </tbody>
    </table>
  );
}

/** The head of a file that is shown: its name, how large it is, and how to get it. */
export function PreviewHead({ source, children }: { source: SizedSource; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="preview-head">
      <h2 class="mono">{source.name}</h2>
      <span class="muted small">{formatBytes(source.size)}</span>
      {children}
      <span class="spacer" />
      <a class="button" href={source.download} download>Download</a>
    </div>
  );
}
