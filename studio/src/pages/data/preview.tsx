/** A file of a datastore. */
import type { JSX } from "preact";
import { addressOf, call } from "../../api/client";
import { Dialog } from "../../components/dialog";
import { Preview } from "../../components/preview";

interface Props {
  workspace: string;
  store: string;
  path: string;
}

export function FileDialog({ onClose, ...file }: Props & { onClose: () => void }): JSX.Element {
  return (
    <Dialog title={nameOf(file.path)} onClose={onClose}>
      <FileContents {...file} />
      <div class="buttons">
        <a class="button" href={findDownload(file)} download>Download</a>
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

export function FileContents({ workspace, store, path }: Props): JSX.Element {
  const download = findDownload({ workspace, store, path });
  const route = "GET /api/v1/workspaces/{workspace}/datastores/{name}/previews/{path}";
  const source = {
    key: download,
    name: nameOf(path),
    read: (start: number, signal?: AbortSignal) => call(route, { workspace, name: store, path, start, rows: 100 }, { signal }),
    download,
    picture: download,
    page: addressOf("GET /api/v1/workspaces/{workspace}/datastores/{name}/pages/{path}", { workspace, name: store, path }),
  };
  return <Preview source={source} />;
}

function nameOf(path: string): string {
  return path.split("/").pop() ?? path;
}

function findDownload({ workspace, store, path }: Props): string {
  return addressOf("GET /api/v1/workspaces/{workspace}/datastores/{name}/files/{path}", { workspace, name: store, path });
}
