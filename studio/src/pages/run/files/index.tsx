/** The files of a run, with previews. While the run goes on, new files appear by themselves. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { setParameters, useParameter } from "../../../address";
import { addressOf, call } from "../../../api/client";
import { useResource } from "../../../api/resource";
import type { FileEntry } from "../../../api/types";
import { Empty, ErrorBox, Loading } from "../../../components/feedback";
import { FileTree } from "../../../components/file-tree";
import { Preview, PreviewHead, type SizedSource } from "../../../components/preview";
import { formatBytes } from "../../../text/numbers";
import { hasEnded } from "../run_words";
import type { RunTabProps } from "../tab";

const PREVIEW_BYTES = 256 * 1024;
const PAUSE = 2000;

export function FilesTab({ workspace, run }: RunTabProps): JSX.Element {
  const address = { workspace, run_id: run.id };
  const [chosen] = useParameter("file");
  const [filter, setFilter] = useParameter("filter");
  const isOver = hasEnded(run.status);
  const took = useRef(0);
  const list = useResource(
    async (signal) => {
      const begin = performance.now();
      const route = "GET /api/v1/workspaces/{workspace}/runs/{run_id}/files" as const;
      const [{ files }, left] = await Promise.all([
        call(route, address, { signal }),
        isOver ? call(route, { ...address, left: true }, { signal }) : { files: [] },
      ]);
      took.current = performance.now() - begin;
      return [...(files ?? []), ...(left.files ?? [])];
    },
    [workspace, run.id, isOver],
  );
  useRepeated(list.reload, isOver ? undefined : () => Math.max(PAUSE, 20 * took.current));

  const files = useStable(list.value ?? []);
  const file = files.find((each) => each.name === chosen);
  if (list.error && !list.value) return <ErrorBox error={list.error} onRetry={list.reload} />;
  if (!list.value) return <Loading />;
  if (!files.length) return <Empty title={isOver ? "This run has no files." : "There are no files yet."} />;
  const total = files.reduce((sum, each) => sum + each.size, 0);
  const shown = files.filter((each) => each.name.toLowerCase().includes(filter.trim().toLowerCase()));
  return (
    <section class="browser" aria-label="Files">
      <div class="browser-list">
        <div class="row">
          <input
            type="search"
            placeholder="Filter by name"
            aria-label="Filter files by name"
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
          <span class="muted small">{filter.trim() ? `${shown.length} of ${files.length}` : `${files.length} files · ${formatBytes(total)}`}</span>
          <a class="button" href={addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/archive", address)} download>Download all</a>
        </div>
        <FileTree
          label="Files of the run"
          files={files}
          filter={filter}
          chosen={chosen}
          onChoose={(name) => setParameters({ file: name }, { replace: !!chosen })}
        />
      </div>
      <div class="browser-file">
        {file ? <FileView key={file.name} address={address} file={file} isOver={isOver} /> : <Hint name={chosen} />}
      </div>
    </section>
  );
}

function Hint({ name }: { name: string }): JSX.Element {
  return <Empty title={name ? `There is no file "${name}".` : "Choose a file to look into it."} />;
}

interface ViewProps {
  address: { workspace: string; run_id: string };
  file: FileEntry;
  isOver: boolean;
}

function FileView({ address, file, isOver }: ViewProps): JSX.Element {
  const route = "GET /api/v1/workspaces/{workspace}/runs/{run_id}/files/{name}" as const;
  const source: SizedSource = {
    key: `${file.name}:${file.modified_at}:${file.size}`,
    name: file.name,
    size: file.size,
    read: (start, signal) =>
      call(
        "GET /api/v1/workspaces/{workspace}/runs/{run_id}/previews/{name}",
        { ...address, name: file.name, start, size: PREVIEW_BYTES },
        { signal },
      ),
    download: addressOf(route, { ...address, name: file.name }),
    picture: addressOf(route, { ...address, name: file.name, preview: "image" }),
    page: addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/pages/{name}", { ...address, name: file.name }),
  };
  return (
    <>
      <PreviewHead source={source}>{!isOver && <span class="muted small">may still change</span>}</PreviewHead>
      <Preview source={source} />
    </>
  );
}

/** Calls `repeat` again and again while the tab is visible; `pause` says after how many milliseconds. */
function useRepeated(repeat: () => void, pause: (() => number) | undefined): void {
  const latest = useRef(repeat);
  latest.current = repeat;
  const isWanted = pause !== undefined;
  useEffect(() => {
    if (!pause) return undefined;
    let timer = 0;
    const wait = () => {
      timer = window.setTimeout(() => {
        if (document.visibilityState === "visible") latest.current();
        wait();
      }, pause());
    };
    wait();
    return () => clearTimeout(timer);
  }, [isWanted]);
}

/** The same list as before if nothing in it has changed, so that nothing is drawn again. */
function useStable(files: FileEntry[]): FileEntry[] {
  const text = useMemo(() => JSON.stringify(files), [files]);
  return useMemo(() => files, [text]);
}
