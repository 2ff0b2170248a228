/** Saved views: an address with a name, for oneself or for everybody in the workspace. */
import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { navigate } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { SavedView } from "../../api/types";
import { Dialog } from "../../components/dialog";
import { ErrorBox, Loading, notify, notifyError } from "../../components/feedback";
import { Link } from "../../components/link";
import { Session, useMay } from "../../session";

const PAGE = "runs";

export function ViewsDialog({ workspace, onClose }: { workspace: string; onClose: () => void }): JSX.Element {
  const me = useContext(Session);
  const [name, setName] = useState("");
  const [isShared, setIsShared] = useState(false);
  const mayShare = useMay(workspace, "contributor");
  const mayDelete = useMay(workspace, "owner");
  const views = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/views", { workspace, page: PAGE }, { signal }),
    [workspace],
  );

  async function save(): Promise<void> {
    try {
      await call("POST /api/v1/workspaces/{workspace}/views", {
        workspace, page: PAGE, name: name.trim(), query: location.search.slice(1), is_shared: isShared,
      });
      notify(`Saved the view ${name.trim()}.`);
      setName("");
      views.reload();
    } catch (error) {
      notifyError(error);
    }
  }

  async function remove(view: SavedView): Promise<void> {
    try {
      await call("DELETE /api/v1/workspaces/{workspace}/views/{view_id}", { workspace, view_id: view.id });
      views.reload();
    } catch (error) {
      notifyError(error);
    }
  }

  return (
    <Dialog title="Views" onClose={onClose}>
      {views.error && <ErrorBox error={views.error} onRetry={views.reload} />}
      {!views.value && !views.error && <Loading />}
      {views.value?.views.length === 0 && <p class="muted">No view has been saved yet.</p>}
      <ul class="runs-entries">
        {views.value?.views.map((each) => (
          <li key={each.id}>
            <Link
              class="runs-entry-title"
              href={`${location.pathname}${each.query ? `?${each.query}` : ""}`}
              onClick={onClose}
            >
              {each.name}
            </Link>
            <span class="muted small">{describeView(each, me?.user ?? "")}</span>
            {(each.owner === me?.user || mayDelete) && (
              <button type="button" class="plain" aria-label={`Delete the view ${each.name}`} onClick={() => void remove(each)}>✕</button>
            )}
          </li>
        ))}
      </ul>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <input
          aria-label="Name of the view"
          placeholder="Name of this view"
          required
          maxLength={100}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        {mayShare && (
          <label class="row">
            <input type="checkbox" checked={isShared} onChange={(event) => setIsShared(event.currentTarget.checked)} />
            Share with everybody in {workspace}
          </label>
        )}
        <button type="submit" class="primary" disabled={!name.trim()}>Save view</button>
      </form>
      <p class="muted small">
        A view keeps the filter, the order, the groups and the columns. A view of the same name is replaced.{" "}
        <button type="button" class="plain runs-inline" onClick={() => { navigate(location.pathname); onClose(); }}>Reset the table</button>
      </p>
    </Dialog>
  );
}

function describeView(view: SavedView, user: string): string {
  if (view.owner === user) return view.is_shared ? "yours, shared" : "yours";
  return `shared by ${view.owner}`;
}
