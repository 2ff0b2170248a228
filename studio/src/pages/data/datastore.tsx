/** The folders and files of a datastore. */
import type { JSX } from "preact";
import { formatAddress, navigate, useParameter } from "../../address";
import { addressOf, call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { FileEntry } from "../../api/types";
import { DangerButton } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import { formatBytes } from "../../text/numbers";
import { describeStore, listFolder } from "./folders";
import { FileDialog } from "./preview";

const MOST_FILES = 1000;

interface Props {
  workspace: string;
  name: string;
  folder: string;
}

export function DatastorePart({ workspace, name, folder }: Props): JSX.Element {
  const store = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/datastores/{name}", { workspace, name }, { signal }), [workspace, name]);
  const mayDelete = useMay(workspace, "owner");
  if (!store.value) return store.error ? <ErrorBox error={store.error} onRetry={store.reload} /> : <Loading />;
  return (
    <div class="stack">
      <p class="path"><Link href={formatAddress(workspace, "data")}>Data</Link></p>
      <div class="row">
        <h1>{name}</h1>
        <span class="muted small">{describeStore(store.value.url)} <code>{store.value.url}</code>{store.value.is_default ? ", the default" : ""}</span>
        <span class="spacer" />
        {mayDelete && !store.value.is_default && (
          <DangerButton
            label="Delete"
            title={`Delete the datastore ${name}?`}
            text="Only its name and keys are removed from the workspace. The data stay where they are."
            action="Delete the datastore"
            done={`${name} is deleted.`}
            work={() => call("DELETE /api/v1/workspaces/{workspace}/datastores/{name}", { workspace, name })}
            onDone={() => navigate(formatAddress(workspace, "data"))}
          />
        )}
      </div>
      <Browser workspace={workspace} name={name} folder={folder} />
    </div>
  );
}

function Browser({ workspace, name, folder }: Props): JSX.Element {
  const [file, setFile] = useParameter("file");
  const mayAskStore = useMay(workspace, "contributor");
  const files = useResource((signal) => listFiles(workspace, name, folder, mayAskStore, signal), [workspace, name, folder, mayAskStore]);
  if (files.error) return <ErrorBox error={files.error} onRetry={files.reload} />;
  if (!files.value) return <Loading />;
  const shown = listFolder(files.value.files, folder);
  const isEmpty = !shown.folders.length && !shown.files.length;
  return (
    <>
      <Path workspace={workspace} name={name} folder={folder} />
      {isEmpty && (
        <Empty title={folder ? "This folder is empty." : "This datastore has no files yet."}>
          <CodeBlock label="Upload a folder" text={`Datastore(workspace, ${JSON.stringify(name)}).upload("./data", target_path=${JSON.stringify(folder || "data")})`} />
        </Empty>
      )}
      {!isEmpty && (
        <Listing label="Files" columns={["Name", { number: "Size" }, "Changed", { hidden: "Download" }]}>
          {shown.folders.map((each) => (
            <tr key={`${each.name}/`}>
              <td class="name">
                <Link href={formatAddress(workspace, "data", ["datastores", name, ...folder.split("/"), each.name])}>{each.name}/</Link>
                <div class="muted small">{each.files} {each.files === 1 ? "file" : "files"}</div>
              </td>
              <td class="number">{formatBytes(each.bytes)}</td>
              <td />
              <td />
            </tr>
          ))}
          {shown.files.slice(0, MOST_FILES).map((each) => (
            <FileRow key={each.name} workspace={workspace} store={name} file={each} isOpened={files.value?.isOpened ?? false} onShow={() => setFile(each.name)} />
          ))}
        </Listing>
      )}
      {shown.files.length > MOST_FILES && <p class="muted">and {shown.files.length - MOST_FILES} more files</p>}
      {file && <FileDialog key={file} workspace={workspace} store={name} path={file} onClose={() => setFile("")} />}
    </>
  );
}

/** Files of a folder of the server are opened by the server; those of other stores are listed with their keys. */
async function listFiles(workspace: string, name: string, folder: string, mayAskStore: boolean, signal: AbortSignal): Promise<{ files: FileEntry[]; isOpened: boolean }> {
  const prefix = folder ? { prefix: folder } : {};
  try {
    const answer = await call("GET /api/v1/workspaces/{workspace}/datastores/{name}/files", { workspace, name, ...prefix }, { signal });
    return { files: answer["files"] ?? [], isOpened: true };
  } catch (error) {
    if (!mayAskStore || (error as { status?: number }).status !== 409) throw error;
    const { result } = await call(
      "POST /api/v1/workspaces/{workspace}/operations/datastores.files",
      { workspace, name, prefix: folder, with_folders: false },
      { signal },
    );
    return { files: result.map(([path, size]) => ({ name: String(path), size: Number(size), modified_at: "NaN" as const })), isOpened: false };
  }
}

function Path({ workspace, name, folder }: Props): JSX.Element {
  const parts = folder.split("/").filter(Boolean);
  return (
    <nav class="path" aria-label="Folder">
      <Link href={formatAddress(workspace, "data", ["datastores", name])}>{name}</Link>
      {parts.map((part, index) => (
        <span key={index}>
          <span class="muted">/ </span>
          <Link href={formatAddress(workspace, "data", ["datastores", name, ...parts.slice(0, index + 1)])}>{part}</Link>
        </span>
      ))}
    </nav>
  );
}

interface RowProps {
  workspace: string;
  store: string;
  file: FileEntry;
  isOpened: boolean;
  onShow: () => void;
}

function FileRow({ workspace, store, file, isOpened, onShow }: RowProps): JSX.Element {
  const last = file.name.split("/").pop() ?? "";
  return (
    <tr>
      <td class="name">{isOpened ? <button type="button" class="link" onClick={onShow}>{last}</button> : last}</td>
      <td class="number">{formatBytes(file.size)}</td>
      <td class="kept-whole"><Age at={file.modified_at} /></td>
      <td class="actions">
        {isOpened && (
          <a href={addressOf("GET /api/v1/workspaces/{workspace}/datastores/{name}/files/{path}", { workspace, name: store, path: file.name })} aria-label={`Download ${file.name}`} download>
            Download
          </a>
        )}
      </td>
    </tr>
  );
}
