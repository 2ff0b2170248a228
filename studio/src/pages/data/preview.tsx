/** The beginning of a file, as text or as a table. Everything in it is shown as text. */
import type { JSX } from "preact";
import { addressOf, call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { TablePart } from "../../api/types";
import { Dialog } from "../../components/dialog";
import { ErrorBox, Loading } from "../../components/feedback";
import { formatBytes } from "../../text/numbers";

interface Props {
  workspace: string;
  store: string;
  path: string;
  onClose: () => void;
}

export function Preview({ workspace, store, path, onClose }: Props): JSX.Element {
  const name = path.split("/").pop() ?? path;
  const address = addressOf("GET /api/v1/workspaces/{workspace}/datastores/{name}/files/{path}", { workspace, name: store, path });
  return (
    <Dialog title={name} onClose={onClose}>
      <FileStart workspace={workspace} store={store} path={path} />
      <div class="buttons">
        <a class="button" href={address} download>Download</a>
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

/** The first part of a file of a datastore. */
export function FileStart({ workspace, store, path }: Omit<Props, "onClose">): JSX.Element {
  const found = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/datastores/{name}/previews/{path}", { workspace, name: store, path, rows: 100 }, { signal }),
    [workspace, store, path],
  );
  if (found.error) return <ErrorBox error={found.error} onRetry={found.reload} />;
  if (!found.value) return <Loading />;
  const { kind, text, table, size, notice, next, onnx } = found.value;
  return (
    <div class="stack-small">
      <p class="muted small">{formatBytes(size)}{next !== null && kind !== "none" ? ", its beginning" : ""}{notice ? `. ${notice}` : ""}</p>
      {kind === "text" && <pre class="cause" tabIndex={0} aria-label="Beginning of the file">{text || "The file is empty."}</pre>}
      {kind === "table" && table && <TableStart table={table} />}
      {kind === "onnx" && onnx && <p>ONNX model with {onnx.nodes} nodes and {onnx.weights} weights, opset {onnx.opset}.</p>}
      {!["text", "table", "onnx"].includes(kind) && !notice && <p class="muted">Download it to see what it contains.</p>}
    </div>
  );
}

function TableStart({ table }: { table: TablePart }): JSX.Element {
  return (
    <div class="scroll preview-table" tabIndex={0} role="group" aria-label="Beginning of the table">
      <table class="list">
        <thead><tr>{table.columns.map((each, index) => <th key={index} scope="col" title={each.type}>{each.name}</th>)}</tr></thead>
        <tbody>
          {table.rows.map((row, number) => (
            <tr key={number}>{row.map((cell, index) => <td key={index}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {table.row_count !== null && <p class="muted small">{table.row_count} rows in all</p>}
    </div>
  );
}
