/** The logs of a run: of all ranks, live, together or side by side, searched, and opened at their ends. */
import type { JSX } from "preact";
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { setParameters, useParameter } from "../../../address";
import { ApiError, addressOf, call } from "../../../api/client";
import { Empty, ErrorBox, Loading, notify, notifyError } from "../../../components/feedback";
import { formatBytes, toNumber } from "../../../text/numbers";
import { useGrowth } from "../growth";
import { hasEnded } from "../run_words";
import type { RunTabProps } from "../tab";
import { findError, TRACEBACK } from "./matches";
import { LogModel } from "./model";
import { OtherLogs } from "./other";
import { chooseLogs, groupLogs, nameLog } from "./ranks";
import type { LogReader, RunAddress } from "./reader";
import { findLast, type Match, useSearch } from "./search";
import { interleave, isEstimated, type Timed } from "./times";
import { LogToolbar } from "./toolbar";
import { LogViewer, type Row, type Target } from "./viewer";

export function LogsTab({ workspace, run, growth }: RunTabProps): JSX.Element {
  const address = useMemo<RunAddress>(() => ({ workspace, run_id: run.id }), [workspace, run.id]);
  const model = useLogModel(address);
  useGrowth(growth, model.refresh);
  const isOver = hasEnded(run.status);
  useEffect(() => model.refresh(), [model, isOver]);

  const [name] = useParameter("log");
  const [ranks] = useParameter("ranks");
  const [view] = useParameter("view", "together");
  const [wrap] = useParameter("wrap");
  const [search, setSearch] = useParameter("search");
  const [lineText] = useParameter("line");
  const groups = groupLogs(model.infos);
  const chosen = chooseLogs(groups, name, ranks);
  const names = chosen.map((each) => each.identity).join();
  useEffect(() => model.choose(chosen), [model, names]);

  const readers = model.readers.filter((each) => chosen.some((info) => info.identity === each.info.identity));
  const [target, setTarget] = useState<Target | undefined>(undefined);
  const show = async (match: Pick<Match, "identity" | "offset"> & { number?: number | undefined }) => {
    await model.reveal(match.identity, match.offset, match.number);
    // The offset of a match may lie within a line that is shown from its beginning.
    const reader = model.reader(match.identity);
    const place = reader?.lines.find(match.offset) ?? -1;
    const line = reader && (reader.lines.lines[place] ?? reader.lines.incomplete);
    setTarget({ identity: match.identity, offset: line?.offset ?? match.offset });
  };
  useLineOfAddress(model, lineText, show);
  const found = useSearch(address, readers, search, model.version);
  const [current, setCurrent] = useState(-1);
  useEffect(() => setCurrent(-1), [search, names]);
  const goToMatch = (step: number) => {
    const count = found.matches.length;
    if (!count) return;
    // The end of a log is what is looked at first, so the first match shown is the last one.
    const next = current < 0 ? (step > 0 ? 0 : count - 1) : (current + step + count) % count;
    setCurrent(next);
    void show(found.matches[next]!);
  };

  const [isSeekingError, setSeekingError] = useState(false);
  const hasError = run.status === "Failed" || readers.some((each) => findError(each.lines.lines) !== undefined);
  const pendingError = useRef<number | null>(null);
  const goToError = async () => {
    setSeekingError(true);
    try {
      const rank = run.status === "Failed" ? await findFailedRank(address) : null;
      const info = groups.ranks.find((each) => each.rank === rank);
      if (info && !readers.some((each) => each.info.identity === info.identity)) {
        pendingError.current = rank;
        setParameters({ log: undefined, ranks: String(rank) });
        return;
      }
      await showError(address, readers, rank, show);
    } catch (error) {
      notifyError(error);
    } finally {
      setSeekingError(false);
    }
  };
  const areOpen = readers.length > 0 && readers.every((each) => each.isOpen);
  useEffect(() => {
    if (!areOpen || pendingError.current === null) return;
    const rank = pendingError.current;
    pendingError.current = null;
    showError(address, readers, rank, show).catch(notifyError);
  }, [areOpen, names]);

  if (!model.isListed) {
    return model.error ? <ErrorBox error={toApiError(model.error)} onRetry={model.refresh} /> : <Loading />;
  }
  if (!model.infos.length) {
    return <Empty title={isOver ? "This run has no logs." : "Nothing has been printed yet."} />;
  }
  const isTogether = readers.length < 2 || view !== "beside";
  const panes = isTogether ? [readers] : readers.map((each) => [each]);
  return (
    <section class="logs" aria-label="Logs">
      <LogToolbar
        groups={groups}
        chosen={chosen}
        name={name}
        isBeside={view === "beside"}
        isWrapped={wrap === "1"}
        search={search}
        onSearch={setSearch}
        found={found}
        current={current}
        onStep={goToMatch}
        onError={hasError && !isSeekingError ? () => void goToError() : undefined}
        hasError={hasError}
        download={downloadAddress(address, readers)}
        isConnected={model.error === undefined}
      />
      {chosen.length === 0 && <Empty title={`This run has no log "${name}".`} />}
      <div class={isTogether ? "log-panes" : "log-panes log-beside"}>
        {panes.filter((each) => each.length).map((each) => (
          <LogPane
            key={each.map((reader) => reader.info.identity).join()}
            model={model}
            readers={each}
            isOnly={groups.ranks.length === 1}
            isWrapped={wrap === "1"}
            search={search}
            target={target}
            isOver={isOver}
            startedAt={toNumber(run.started_at ?? run.created_at)}
            onLink={(row) => copyLink(model, row, setTarget)}
          />
        ))}
      </div>
      <OtherLogs groups={groups} name={name} />
    </section>
  );
}

/** The logs of one run, for as long as they are shown. */
function useLogModel(address: RunAddress): LogModel {
  const [, render] = useReducer((count: number) => count + 1, 0);
  const model = useMemo(() => new LogModel(address, () => render(undefined as never)), [address]);
  useEffect(() => () => model.close(), [model]);
  return model;
}

interface PaneProps {
  model: LogModel;
  readers: readonly LogReader[];
  isOnly: boolean;
  isWrapped: boolean;
  search: string;
  target: Target | undefined;
  isOver: boolean;
  startedAt: number;
  onLink: (row: Row) => void;
}

function LogPane({ model, readers, isOnly, isWrapped, search, target, isOver, startedAt, onLink }: PaneProps): JSX.Element {
  const versions = readers.map((each) => `${each.info.identity}:${each.lines.version}:${each.openedAt}:${each.lines.start}`).join();
  const rows = useMemo(() => listRows(readers, startedAt), [versions, startedAt]);
  const isGuess = useMemo(() => isEstimated(readers.map((each) => each.lines.lines)), [versions]);
  const isFollowed = readers.every((each) => each.isFollowed);
  const isBusy = useRef(false);
  const label = readers.length > 1 ? "Output of the chosen ranks" : nameLog(readers[0]!.info, isOnly);
  const above = readers.reduce((sum, each) => sum + (each.isOpen ? each.lines.start : 0), 0);

  const extend = (edge: "earlier" | "later") => {
    if (isBusy.current) return;
    const wanted = readers.filter((each) => (edge === "earlier" ? each.lines.start > 0 : !each.isAtEnd));
    if (edge === "later" && wanted.length === 0) follow(true);
    if (wanted.length === 0) return;
    isBusy.current = true;
    void model.extend(wanted, edge).then(() => {
      isBusy.current = false;
    });
  };
  const follow = (wanted: boolean) => {
    if (wanted) void model.goToEnd(readers);
    else
      void model.act(async () => {
        for (const each of readers) each.isFollowed = false;
      });
  };
  const [starts, setStarts] = useState(0);
  const goToStart = async () => {
    await model.act(() => Promise.all(readers.map((each) => each.seek(0))));
    setStarts((count) => count + 1);
  };
  return (
    <div class="log-pane">
      <div class="log-head">
        <strong>{label}</strong>
        <span class="muted small log-size">{formatBytes(readers.reduce((sum, each) => sum + each.info.size, 0))}</span>
        {isGuess && (
          <span class="muted small" title="Lines are placed by when they arrived here and, if they were there before, by their place in their log.">
            Order estimated: lines have no times
          </span>
        )}
        {above > 0 && <span class="muted small">{formatBytes(above)} above</span>}
        <span class="spacer" />
        <button type="button" class="plain" onClick={() => void goToStart()}>Start</button>
        <button type="button" class="plain" aria-pressed={isFollowed} onClick={() => follow(!isFollowed)}>
          {isOver ? "End" : isFollowed ? "Following" : "Follow"}
        </button>
      </div>
      <LogViewer
        label={label}
        rows={rows}
        hasRanks={readers.length > 1}
        isWrapped={isWrapped}
        search={search}
        target={target}
        starts={starts}
        isFollowed={isFollowed}
        onFollow={follow}
        onEdge={extend}
        onLink={onLink}
      />
    </div>
  );
}

interface TimedLog extends Timed {
  reader: LogReader;
}

/** The lines of one log, or of several in the order in which they were written. */
function listRows(readers: readonly LogReader[], startedAt: number): Row[] {
  const logs = readers.map((reader): TimedLog => {
    const { lines, incomplete } = reader.lines;
    return {
      reader,
      lines: incomplete ? [...lines, incomplete] : lines,
      size: reader.info.size,
      from: Math.min(startedAt, reader.openedAt),
      to: reader.openedAt,
    };
  });
  if (logs.length === 1) {
    const { reader, lines } = logs[0]!;
    const { identity, rank } = reader.info;
    const first = reader.lines.firstNumber;
    return lines.map((line, index) => ({ identity, line, number: first === undefined ? undefined : first + index, rank }));
  }
  const counts = new Map<LogReader, number>();
  return interleave(logs).map(({ log, line }) => {
    const { reader } = log;
    const count = counts.get(reader) ?? 0;
    counts.set(reader, count + 1);
    const first = reader.lines.firstNumber;
    return {
      identity: reader.info.identity,
      line,
      number: first === undefined ? undefined : first + count,
      rank: reader.info.rank,
    };
  });
}

/** Shows the line that the address names, once the log is there: `line=<log>:<offset>`. */
function useLineOfAddress(model: LogModel, text: string, show: (match: { identity: string; offset: number }) => Promise<void>): void {
  const done = useRef("");
  useEffect(() => {
    const colon = text.lastIndexOf(":");
    const info = model.infos.find((each) => each.name === text.slice(0, colon));
    const offset = Number(text.slice(colon + 1));
    if (!text || done.current === text || !info || !Number.isSafeInteger(offset) || offset < 0) return;
    if (!model.reader(info.identity)?.isOpen) return;
    done.current = text;
    void show({ identity: info.identity, offset });
  });
}

function copyLink(model: LogModel, row: Row, setTarget: (target: Target) => void): void {
  const info = model.reader(row.identity)?.info;
  if (!info) return;
  setTarget({ identity: row.identity, offset: row.line.offset });
  setParameters({ line: `${info.name}:${row.line.offset}` });
  // Without TLS browsers have no clipboard; the address bar has the link anyway.
  const copied = navigator.clipboard?.writeText(location.href);
  copied?.then(
    () => notify("The link to this line has been copied."),
    () => undefined,
  );
}

async function findFailedRank(address: RunAddress): Promise<number | null> {
  const found = await call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/explanation", address);
  return found.rank;
}

/** The last traceback of the rank that failed, otherwise of any rank. */
async function showError(
  address: RunAddress,
  readers: readonly LogReader[],
  rank: number | null,
  show: (match: Pick<Match, "identity" | "offset" | "number">) => Promise<void>,
): Promise<void> {
  const ordered = [...readers].sort((a, b) => Number(b.info.rank === rank) - Number(a.info.rank === rank));
  for (const reader of ordered) {
    const offset = findError(reader.lines.lines);
    const match = offset === undefined ? undefined : { identity: reader.info.identity, offset, number: undefined };
    const found = match ?? (reader.isWhole ? undefined : await findLast(address, reader, TRACEBACK));
    if (found) {
      await show(found);
      return;
    }
  }
  const first = ordered[0];
  const last = first?.lines.lines[first.lines.lines.length - 1];
  if (first && last) await show({ identity: first.info.identity, offset: last.offset, number: undefined });
}

/** One log as it is, several as an archive of all logs. */
function downloadAddress(address: RunAddress, readers: readonly LogReader[]): string | undefined {
  if (readers.length === 0) return undefined;
  if (readers.length > 1) {
    return addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/archive", { ...address, prefix: "azureml-logs/" });
  }
  return addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/files/{name}", {
    ...address,
    name: `azureml-logs/${readers[0]!.info.name}`,
  });
}

function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, "the logs cannot be read", String(error));
}
