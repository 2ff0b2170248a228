/** What was changed, by whom: of the workspace for its owners, of the whole server for administrators. */
import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { useParameter } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { AuditEntryAnswer } from "../../api/types";
import { attempt } from "../../components/actions";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { Session } from "../../session";
import type { PartProps } from "./index";
import { describeChange, describeObject, describeResult } from "./words";

const PAGE = 100;

export function AuditPart({ workspace }: PartProps): JSX.Element {
  const me = useContext(Session);
  const [scope, setScope] = useParameter("scope", "workspace");
  const [user, setUser] = useParameter("user");
  const [older, setOlder] = useState<{ key: string; entries: AuditEntryAnswer[]; before: number | null }>();
  const isServer = scope === "server" && !!me?.is_admin;
  const key = `${isServer}/${user}`;
  const read = (before: number | undefined, signal?: AbortSignal) => {
    const query = { limit: PAGE, ...(before === undefined ? {} : { before }), ...(user ? { user } : {}) };
    return isServer ? call("GET /api/v1/audit", query, { signal }) : call("GET /api/v1/workspaces/{workspace}/audit", { workspace, ...query }, { signal });
  };
  const found = useResource((signal) => read(undefined, signal), [workspace, key]);
  const more = older?.key === key ? older : undefined;
  const entries = [...(found.value?.entries ?? []), ...(more?.entries ?? [])];
  const next = more ? more.before : found.value?.before ?? null;
  return (
    <section class="stack" aria-label="Audit log">
      <div class="row">
        {me?.is_admin && (
          <label class="row">
            <span class="muted">Changes of</span>
            <select value={isServer ? "server" : "workspace"} onChange={(event) => setScope(event.currentTarget.value)}>
              <option value="workspace">{workspace}</option>
              <option value="server">the whole server</option>
            </select>
          </label>
        )}
        <input type="search" class="search" aria-label="Only of this user" placeholder="Only of this user" value={user} onChange={(event) => setUser(event.currentTarget.value.trim())} />
        <span class="spacer" />
        <button type="button" onClick={() => { setOlder(undefined); found.reload(); }}>Refresh</button>
      </div>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !entries.length && <Empty title="Nothing was changed." />}
      {entries.length > 0 && <AuditTable entries={entries} hasWorkspace={isServer} />}
      {next !== null && (
        <div>
          <button
            type="button"
            onClick={() => void attempt(async () => {
              const answer = await read(next);
              setOlder({ key, entries: [...(more?.entries ?? []), ...answer.entries], before: answer.before });
            }, "")}
          >
            Show older changes
          </button>
        </div>
      )}
    </section>
  );
}

function AuditTable({ entries, hasWorkspace }: { entries: readonly AuditEntryAnswer[]; hasWorkspace: boolean }): JSX.Element {
  return (
    <Listing label="Changes" columns={["When", "Who", "What", "On", hasWorkspace && "Workspace", "Result", "From"]}>
      {entries.map((entry) => {
        const result = describeResult(entry.status);
        return (
          <tr key={entry.seq}>
            <td class="kept-whole"><Age at={entry.at} /></td>
            <td class="name">{entry.caller}</td>
            <td class="name"><code title={`${entry.method} ${entry.route}`}>{describeChange(entry)}</code></td>
            <td class="reason">{describeObject(entry.target)}</td>
            {hasWorkspace && <td class="name">{entry.workspace}</td>}
            <td><span class={`status status-${result.tone}`}>{result.text}</span></td>
            <td class="kept-whole">{entry.address}</td>
          </tr>
        );
      })}
    </Listing>
  );
}
