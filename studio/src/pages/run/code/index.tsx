/** The code of a run as it was submitted. */
import type { JSX } from "preact";
import { setParameters, useParameter } from "../../../address";
import { addressOf, call } from "../../../api/client";
import { useResource } from "../../../api/resource";
import { Empty, ErrorBox, Loading } from "../../../components/feedback";
import { FileTree } from "../../../components/file-tree";
import { Preview, PreviewHead, type SizedSource } from "../../../components/preview";
import { formatBytes } from "../../../text/numbers";
import { readSpec } from "../run_words";
import type { RunTabProps } from "../tab";
import { tokenize } from "./python";

interface Manifest {
  files: { path: string; digest: string; size: number }[];
}

const PREVIEW_BYTES = 512 * 1024;

export function CodeTab({ workspace, run }: RunTabProps): JSX.Element {
  if (!run.snapshot_id) return <Empty title="This run has no snapshot of its code." />;
  return <Snapshot workspace={workspace} snapshotId={run.snapshot_id} script={readSpec(run.spec)?.script ?? ""} />;
}

function Snapshot({ workspace, snapshotId, script }: { workspace: string; snapshotId: string; script: string }): JSX.Element {
  const address = { workspace, snapshot_id: snapshotId };
  const [chosen] = useParameter("file");
  const [filter, setFilter] = useParameter("filter");
  const manifest = useResource(
    async (signal) => {
      const found = await call("GET /api/v1/workspaces/{workspace}/snapshots/{snapshot_id}", address, { signal });
      return (found as unknown as Manifest).files.map(({ path, size, digest }) => ({ name: path, size, digest }));
    },
    [workspace, snapshotId],
  );
  if (manifest.error && !manifest.value) return <ErrorBox error={manifest.error} onRetry={manifest.reload} />;
  if (!manifest.value) return <Loading />;
  const files = manifest.value;
  if (!files.length) return <Empty title="The snapshot is empty." />;
  const name = chosen || (files.find((each) => each.name === script) ?? files.find((each) => each.name.endsWith(".py")) ?? files[0]!).name;
  const file = files.find((each) => each.name === name);
  const route = "GET /api/v1/workspaces/{workspace}/snapshots/{snapshot_id}/files/{name}" as const;
  const source: SizedSource | undefined = file && {
    key: file.digest + file.name,
    name: file.name,
    size: file.size,
    read: (start, signal) =>
      call(
        "GET /api/v1/workspaces/{workspace}/snapshots/{snapshot_id}/previews/{name}",
        { ...address, name: file.name, start, size: PREVIEW_BYTES },
        { signal },
      ),
    download: addressOf(route, { ...address, name: file.name }),
    picture: addressOf(route, { ...address, name: file.name, preview: "image" }),
  };
  return (
    <section class="browser" aria-label="Code">
      <div class="browser-list">
        <div class="row">
          {files.length > 10 && (
            <input
              type="search"
              placeholder="Filter by name"
              aria-label="Filter files by name"
              value={filter}
              onInput={(event) => setFilter(event.currentTarget.value)}
            />
          )}
          <span class="muted small">{`${files.length} ${files.length === 1 ? "file" : "files"} · ${formatBytes(files.reduce((sum, each) => sum + each.size, 0))}`}</span>
          <a class="button" href={addressOf("GET /api/v1/workspaces/{workspace}/snapshots/{snapshot_id}/archive", address)} download>
            Download archive
          </a>
        </div>
        <FileTree label="Files of the snapshot" files={files} filter={filter} chosen={name} onChoose={(path) => setParameters({ file: path })} />
        <p class="muted small">Snapshot <code>{snapshotId.slice(0, 12)}</code></p>
      </div>
      <div class="browser-file">
        {source ? (
          <>
            <PreviewHead source={source} />
            <Preview key={source.key} source={source} {...(name.endsWith(".py") ? { colour: colourPython } : {})} />
          </>
        ) : (
          <Empty title={`There is no file "${name}" in the snapshot.`} />
        )}
      </div>
    </section>
  );
}

function colourPython(text: string): (JSX.Element | string)[] {
  return tokenize(text).map((each, index) => (each.kind ? <span key={index} class={`code-${each.kind}`}>{each.text}</span> : each.text));
}
