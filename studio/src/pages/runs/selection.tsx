/** What can be done with selected runs. The server checks rights; what it would refuse is not offered. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import type { Removal } from "../../api/types";
import { Confirmation, Dialog } from "../../components/dialog";
import { notify, notifyError } from "../../components/feedback";
import { Link } from "../../components/link";
import { useMay } from "../../session";
import { isActive } from "../../text/status";
import { nameOf } from "./cells";
import { countRuns, describeRemoval } from "./removal_text";
import type { Row } from "./run_list";

interface Props {
  workspace: string;
  selected: ReadonlyMap<string, Row>;
  tagNames: readonly string[];
  isArchive: boolean;
  onClear: () => void;
  /** After an action: what is shown has to be read again. */
  onDone: () => void;
}

export function addressOfComparison(workspace: string, ids: readonly string[]): string {
  // The commas of a list stay readable in an address.
  return `${formatAddress(workspace, "compare")}?runs=${ids.map(encodeURIComponent).join(",")}`;
}

type Open = { kind: "cancel" | "tag" } | { kind: "delete"; removal: Removal } | undefined;

export function SelectionBar({ workspace, selected, tagNames, isArchive, onClear, onDone }: Props): JSX.Element {
  const [open, setOpen] = useState<Open>(undefined);
  const [isBusy, setIsBusy] = useState(false);
  const mayChange = useMay(workspace, "contributor");
  const mayDelete = useMay(workspace, "owner");
  const ids = [...selected.keys()];
  const active = [...selected.values()].filter((each) => isActive(String(each["status"] ?? "")));
  // Only runs that have ended can be archived or deleted.
  const ended = [...selected.values()].filter((each) => !active.includes(each));

  async function act(action: () => Promise<string>): Promise<void> {
    setIsBusy(true);
    try {
      notify(await action());
      onDone();
    } catch (error) {
      notifyError(error);
      onDone();
    }
    setIsBusy(false);
  }

  const cancel = () => act(async () => {
    for (const run of active) await call("POST /api/v1/workspaces/{workspace}/runs/{run_id}/cancel", { workspace, run_id: run.id });
    return `Asked ${countRuns(active.length)} to end.`;
  });
  const archive = () => act(async () => {
    const route = isArchive ? "POST /api/v1/workspaces/{workspace}/restored-runs" as const : "POST /api/v1/workspaces/{workspace}/archived-runs" as const;
    const { run_ids } = await call(route, { workspace, run_ids: ended.map((each) => each.id) });
    onClear();
    return isArchive ? `Restored ${countRuns(run_ids.length)}.` : `Archived ${countRuns(run_ids.length)}. The filter "archived is set" finds them.`;
  });
  const askDelete = async () => {
    try {
      const removal = await call("POST /api/v1/workspaces/{workspace}/deleted-runs", { workspace, run_ids: ended.map((each) => each.id), dry_run: true });
      setOpen({ kind: "delete", removal });
    } catch (error) {
      notifyError(error);
    }
  };
  const remove = (removal: Removal) => act(async () => {
    const done = await call("POST /api/v1/workspaces/{workspace}/deleted-runs", { workspace, run_ids: [...removal.run_ids] });
    onClear();
    return `Deleted ${countRuns(done.run_ids.length)}.`;
  });

  return (
    <div class="runs-selection" role="region" aria-label="Selected runs">
      <strong>{countRuns(selected.size)} selected</strong>
      <Action isShown={selected.size >= 2}>
        <Link class="button primary" href={addressOfComparison(workspace, ids)}>Compare</Link>
      </Action>
      <Action isShown={mayChange && active.length > 0}>
        <button type="button" disabled={isBusy} onClick={() => setOpen({ kind: "cancel" })}>Cancel</button>
      </Action>
      <Action isShown={mayChange}>
        <button type="button" disabled={isBusy} onClick={() => setOpen({ kind: "tag" })}>Tag</button>
        <button type="button" disabled={isBusy || !ended.length} onClick={() => void archive()}>{isArchive ? "Restore" : "Archive"}</button>
      </Action>
      <Action isShown={mayDelete}>
        <button type="button" disabled={isBusy || !ended.length} onClick={() => void askDelete()}>Delete</button>
      </Action>
      <button type="button" class="plain" onClick={onClear}>Clear selection</button>
      {open?.kind === "cancel" && (
        <Confirmation
          title={`Cancel ${countRuns(active.length)}?`}
          text={`${listNames(active)} will end. What they have logged and written is kept.`}
          action={`Cancel ${countRuns(active.length)}`}
          onConfirm={() => void cancel()}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open?.kind === "delete" && (
        <Confirmation
          title={`Delete ${countRuns(open.removal.run_ids.length)}?`}
          text={describeRemoval(open.removal, ended.map(nameOf), active.length)}
          action={`Delete ${countRuns(open.removal.run_ids.length)}`}
          onConfirm={() => void remove(open.removal)}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open?.kind === "tag" && (
        <TagDialog workspace={workspace} ids={ids} tagNames={tagNames} onAct={act} onClose={() => setOpen(undefined)} />
      )}
    </div>
  );
}

function Action({ isShown, children }: { isShown: boolean; children: ComponentChildren }): JSX.Element | null {
  return isShown ? <>{children}</> : null;
}

function listNames(rows: readonly Row[]): string {
  const names = rows.slice(0, 5).map(nameOf).join(", ");
  return rows.length > 5 ? `${names} and ${rows.length - 5} more` : names;
}

interface TagProps {
  workspace: string;
  ids: readonly string[];
  tagNames: readonly string[];
  onAct: (action: () => Promise<string>) => Promise<void>;
  onClose: () => void;
}

function TagDialog({ workspace, ids, tagNames, onAct, onClose }: TagProps): JSX.Element {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const set = async () => {
    for (const run_id of ids) {
      await call("PATCH /api/v1/workspaces/{workspace}/runs/{run_id}/tags", { workspace, run_id, tags: { [name.trim()]: value } });
    }
    return `Tagged ${countRuns(ids.length)}.`;
  };
  const remove = async () => {
    for (const run_id of ids) {
      await call("DELETE /api/v1/workspaces/{workspace}/runs/{run_id}/tags", { workspace, run_id, names: [name.trim()] });
    }
    return `Removed the tag ${name.trim()} from ${countRuns(ids.length)}.`;
  };
  return (
    <Dialog title={`Tag ${countRuns(ids.length)}`} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void onAct(set);
          onClose();
        }}
      >
        <label class="runs-field">
          Name
          <input required list="tag-names" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <datalist id="tag-names">{tagNames.map((each) => <option key={each} value={each} />)}</datalist>
        <label class="runs-field">
          Value
          <input value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        </label>
        <div class="buttons">
          <button type="button" disabled={!name.trim()} onClick={() => { void onAct(remove); onClose(); }}>Remove this tag</button>
          <button type="submit" class="primary" disabled={!name.trim()}>Set tag</button>
        </div>
      </form>
    </Dialog>
  );
}
