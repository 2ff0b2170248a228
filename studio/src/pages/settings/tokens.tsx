/** Tokens: for programs and other machines. Their text is shown once. */
import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { TokenAnswer } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { CodeBlock, CopyButton } from "../../components/code";
import { Dialog } from "../../components/dialog";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { Age, useNow } from "../../components/time";
import { Session } from "../../session";
import { toNumber } from "../../text/numbers";
import type { PartProps } from "./index";
import { describeDays, describeScope, findState, ROLES, type RoleName } from "./words";

const DAYS: readonly (readonly [number, string])[] = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [365, "1 year"], [0, "does not expire"]];

export function TokensPart({ workspace }: PartProps): JSX.Element {
  const me = useContext(Session);
  const [isAll, setAll] = useState(false);
  const [made, setMade] = useState("");
  const found = useResource(
    async (signal) => (await call("GET /api/v1/tokens", isAll ? {} : { user: me?.user ?? "" }, { signal })).tokens,
    [me?.user, isAll],
  );
  return (
    <section class="stack" aria-label="Tokens">
      <p class="muted prose">A token lets a program or another machine use the server as you. It is shown once, and can be revoked at any time.</p>
      <TokenForm
        workspace={workspace}
        onMade={(text) => {
          setMade(text);
          found.reload();
        }}
      />
      {me?.is_admin && (
        <label class="row"><input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} />Show those of all users</label>
      )}
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !found.value.length && <Empty title="You have no tokens." />}
      {found.value && found.value.length > 0 && <TokenTable tokens={found.value} hasUser={isAll} reload={found.reload} />}
      {made && (
        <Dialog title="Your new token" onClose={() => setMade("")}>
          <p>Copy it now: it cannot be shown again.</p>
          <p class="row"><code class="secret">{made}</code><CopyButton text={made} label="Copy the token" /></p>
          <CodeBlock label="Sign in on another machine: it asks for the token" text={`trainmaster login ${location.origin}`} />
          <div class="buttons"><button type="button" class="primary" onClick={() => setMade("")}>Done</button></div>
        </Dialog>
      )}
    </section>
  );
}

function TokenForm({ workspace, onMade }: { workspace: string; onMade: (text: string) => void }): JSX.Element {
  const [label, setLabel] = useState("");
  const [days, setDays] = useState(90);
  const [role, setRole] = useState<RoleName | "">("");
  const [isHere, setHere] = useState(false);
  return (
    <form
      class="card form-row"
      aria-label="New token"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(async () => {
          const made = await call("POST /api/v1/tokens", { label: label.trim(), days, role: role || null, workspace: isHere ? workspace : null });
          setLabel("");
          onMade(made.token);
        }, "");
      }}
    >
      <label class="field"><span>What it is for</span><input required maxLength={200} placeholder="laptop" value={label} onInput={(event) => setLabel(event.currentTarget.value)} /></label>
      <label class="field">
        <span>Valid for</span>
        <select value={String(days)} onChange={(event) => setDays(Number(event.currentTarget.value))}>
          {DAYS.map(([value, text]) => <option key={value} value={String(value)}>{text}</option>)}
        </select>
      </label>
      <label class="field">
        <span>Rights</span>
        <select value={role} onChange={(event) => setRole(event.currentTarget.value as RoleName | "")}>
          <option value="">all of yours</option>
          {ROLES.map((each) => <option key={each} value={each}>{each} at most</option>)}
        </select>
      </label>
      <label class="field">
        <span>Workspaces</span>
        <select value={isHere ? "one" : "all"} onChange={(event) => setHere(event.currentTarget.value === "one")}>
          <option value="all">all of yours</option>
          <option value="one">{workspace} only</option>
        </select>
      </label>
      <button type="submit" class="primary">Create a token</button>
    </form>
  );
}

function TokenTable({ tokens, hasUser, reload }: { tokens: readonly TokenAnswer[]; hasUser: boolean; reload: () => void }): JSX.Element {
  const now = useNow(60);
  return (
    <Listing label="Existing tokens" columns={["For", hasUser && "User", "May do", "Created", "Last use", "Expires", { hidden: "Actions" }]}>
      {tokens.map((token) => {
        const state = findState(token, now);
        return (
          <tr key={token.id} class={state === "valid" ? "" : "revoked"}>
            <td class="name">{token.label || <span class="muted">{token.id}</span>}</td>
            {hasUser && <td class="name">{token.user}</td>}
            <td class="name">{describeScope(token)}</td>
            <td class="kept-whole"><Age at={token.created_at} /></td>
            <td class="kept-whole">{token.last_used_at === null ? "never" : <Age at={token.last_used_at} />}</td>
            <td class="kept-whole">{state === "revoked" ? "revoked" : token.expires_at === null ? "never" : describeDays(toNumber(token.expires_at), now)}</td>
            <td class="actions">
              {state === "valid" && (
                <DangerButton
                  label="Revoke"
                  name={`Revoke ${token.label || token.id}`}
                  title={`Revoke the token ${token.label || token.id}?`}
                  text="Programs that use it are refused from now on."
                  action="Revoke the token"
                  done="The token is revoked."
                  work={() => call("DELETE /api/v1/tokens/{token_id}", { token_id: token.id })}
                  onDone={reload}
                />
              )}
            </td>
          </tr>
        );
      })}
    </Listing>
  );
}
