/** Which logs are shown and how, and searching them. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { setParameters } from "../../../address";
import { formatRanks, type Groups, parseRanks } from "./ranks";
import type { LogInfo } from "./reader";
import type { SearchState } from "./search";

/** More ranks than this are chosen by a text. */
const MOST_BUTTONS = 16;

interface Props {
  groups: Groups;
  chosen: readonly LogInfo[];
  /** The log that is shown alone, if one is. */
  name: string;
  isBeside: boolean;
  isWrapped: boolean;
  search: string;
  onSearch: (text: string) => void;
  found: SearchState;
  current: number;
  onStep: (step: number) => void;
  onError: (() => void) | undefined;
  hasError: boolean;
  download: string | undefined;
  isConnected: boolean;
}

export function LogToolbar(props: Props): JSX.Element {
  const { groups, chosen } = props;
  return (
    <div class="log-toolbar">
      {groups.ranks.length > 1 && <RankChoice groups={groups} chosen={chosen} isOther={!!props.name} />}
      {chosen.length > 1 && (
        <div class="buttons-joined" role="group" aria-label="Arrangement">
          <button type="button" aria-pressed={!props.isBeside} onClick={() => setParameters({ view: undefined })}>Together</button>
          <button type="button" aria-pressed={props.isBeside} onClick={() => setParameters({ view: "beside" })}>Side by side</button>
        </div>
      )}
      <SearchBox {...props} />
      {props.hasError && (
        <button type="button" disabled={!props.onError} onClick={() => props.onError?.()}>Jump to the error</button>
      )}
      <span class="spacer" />
      {!props.isConnected && <span class="log-lost" role="status">Connection lost, trying again…</span>}
      <button type="button" aria-pressed={props.isWrapped} onClick={() => setParameters({ wrap: props.isWrapped ? undefined : "1" })}>
        Wrap lines
      </button>
      {props.download && <a class="button" href={props.download} download>Download</a>}
    </div>
  );
}

function RankChoice({ groups, chosen, isOther }: { groups: Groups; chosen: readonly LogInfo[]; isOther: boolean }): JSX.Element {
  const all = groups.ranks.map((each) => each.rank!);
  const shown = new Set(isOther ? [] : chosen.map((each) => each.rank));
  const choose = (ranks: readonly number[]) =>
    setParameters({ log: undefined, line: undefined, ranks: ranks.length === all.length ? "all" : formatRanks(ranks) });
  if (all.length > MOST_BUTTONS) {
    return (
      <label class="row">
        Ranks
        <input
          class="log-ranks"
          value={shown.size === all.length ? "all" : formatRanks([...shown].map(Number))}
          title="For example 0-3, 7, or all"
          onChange={(event) => {
            const { value } = event.currentTarget;
            choose(value.trim() === "all" ? all : parseRanks(value, all[all.length - 1]!));
          }}
        />
        <span class="muted small">of {all.length}</span>
      </label>
    );
  }
  return (
    <div class="buttons-joined" role="group" aria-label="Ranks">
      <button type="button" aria-pressed={shown.size === all.length} onClick={() => choose(all)}>All ranks</button>
      {all.map((rank) => (
        <button
          key={rank}
          type="button"
          aria-label={`Rank ${rank}`}
          aria-pressed={shown.has(rank)}
          onClick={(event) => {
            const isMore = event.shiftKey || event.ctrlKey || event.metaKey;
            if (shown.size === all.length || isOther) choose([rank]);
            else if (shown.has(rank)) choose(shown.size === 1 ? all : [...shown].map(Number).filter((each) => each !== rank));
            else choose(isMore || shown.size > 0 ? [...[...shown].map(Number), rank] : [rank]);
          }}
        >
          {rank}
        </button>
      ))}
    </div>
  );
}

function SearchBox({ search, onSearch, found, current, onStep }: Props): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="log-search" role="search">
      <input
        ref={input}
        type="search"
        placeholder="Search"
        aria-label="Search the logs"
        value={search}
        onInput={(event) => onSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            event.preventDefault();
            onStep(event.shiftKey ? 1 : -1);
          }
        }}
      />
      {search.trim() && (
        <>
          <span class="muted small log-count" role="status">{describeFound(found, current)}</span>
          <button type="button" class="plain" aria-label="Earlier match" disabled={!found.matches.length} onClick={() => onStep(-1)}>↑</button>
          <button type="button" class="plain" aria-label="Later match" disabled={!found.matches.length} onClick={() => onStep(1)}>↓</button>
        </>
      )}
    </div>
  );
}

function describeFound(found: SearchState, current: number): string {
  const count = `${found.matches.length}${found.hasMore ? "+" : ""}`;
  if (!found.matches.length) return found.isSearching || found.hasMore ? "Searching…" : "Not found";
  const lines = found.matches.length === 1 && !found.hasMore ? "line" : "lines";
  return current >= 0 ? `${current + 1} of ${count}` : `${count} ${lines}`;
}
