/** What users and the workspace may use at once. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { QuotaReport } from "../../api/types";
import { attempt } from "../../components/actions";
import { Dialog } from "../../components/dialog";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { useMay } from "../../session";
import { describeOwner, formatAmount, LIMIT_NAMES, LIMITS, type Limit, limitsOf, parseAmount } from "../queue/compute";
import { QuotaTable } from "../queue/quotas";
import type { PartProps } from "./index";

export function QuotasPart({ workspace }: PartProps): JSX.Element {
  const mayChange = useMay(workspace, "owner");
  const [edited, setEdited] = useState<QuotaReport | "new">();
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/quotas", { workspace }, { signal })).quotas,
    [workspace],
  );
  return (
    <section class="stack" aria-label="Quotas">
      <p class="muted prose">A run that would exceed a quota waits, and says for which one. Without a quota there is no limit.</p>
      {mayChange && <div><button type="button" class="primary" onClick={() => setEdited("new")}>Set a quota</button></div>}
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !found.value.length && <Empty title="There are no quotas." />}
      {found.value && found.value.length > 0 && <QuotaTable quotas={found.value} {...(mayChange ? { onEdit: setEdited } : {})} />}
      {edited && (
        <QuotaDialog
          workspace={workspace}
          report={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onDone={() => {
            setEdited(undefined);
            found.reload();
          }}
        />
      )}
    </section>
  );
}

interface DialogProps {
  workspace: string;
  report: QuotaReport | undefined;
  onClose: () => void;
  onDone: () => void;
}

function QuotaDialog({ workspace, report, onClose, onDone }: DialogProps): JSX.Element {
  const limits = report ? limitsOf(report.quota) : undefined;
  const [kind, setKind] = useState(report ? "known" : "workspace");
  const [user, setUser] = useState("");
  const [texts, setTexts] = useState<Record<Limit, string>>(() => {
    const write = (limit: Limit) => (limits?.[limit] == null ? "" : limit === "disk_bytes" ? formatAmount(limit, limits[limit]) : String(limits[limit]));
    return { runs: write("runs"), nodes: write("nodes"), gpus: write("gpus"), disk_bytes: write("disk_bytes") };
  });
  const owner = report ? report.quota.owner : kind === "workspace" ? "" : kind === "each" ? "*" : user.trim();
  const amounts = LIMITS.map((limit) => [limit, parseAmount(limit, texts[limit])] as const);
  // What was not touched stays as it is: a size is shown rounded.
  const changed = amounts.filter(([limit]) => !limits || texts[limit] !== (limits[limit] === null ? "" : formatAmount(limit, limits[limit])));
  const isValid = amounts.every(([, amount]) => amount !== undefined);
  return (
    <Dialog title={report ? `Quota: ${describeOwner(report.quota.owner)}` : "Set a quota"} onClose={onClose}>
      <form
        class="stack-small"
        onSubmit={async (event) => {
          event.preventDefault();
          if (!isValid) return;
          const isDone = await attempt(() => call("PATCH /api/v1/workspaces/{workspace}/quotas", { workspace, owner, ...Object.fromEntries(changed) }), "The quota is set.");
          if (isDone) onDone();
        }}
      >
        {!report && (
          <label class="field">
            <span>Whose</span>
            <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
              <option value="workspace">of the whole workspace</option>
              <option value="each">of each user without a quota of their own</option>
              <option value="user">of one user</option>
            </select>
          </label>
        )}
        {kind === "user" && <label class="field"><span>User</span><input required value={user} onInput={(event) => setUser(event.currentTarget.value)} /></label>}
        {LIMITS.map((limit) => (
          <label key={limit} class="field">
            <span>{LIMIT_NAMES[limit]} <span class="muted small">{limit === "disk_bytes" ? "of ended runs, such as 500 GB" : ""}</span></span>
            <input
              placeholder="no limit"
              value={texts[limit]}
              aria-invalid={parseAmount(limit, texts[limit]) === undefined}
              onInput={(event) => setTexts({ ...texts, [limit]: event.currentTarget.value })}
            />
          </label>
        ))}
        <div class="buttons">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="primary" disabled={!isValid}>Set the quota</button>
        </div>
      </form>
    </Dialog>
  );
}
