/** Who has which role in the workspace. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import { attempt, DangerButton } from "../../components/actions";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { useMay } from "../../session";
import type { PartProps } from "./index";
import { ROLE_MEANINGS, ROLES, type RoleName } from "./words";

export function MembersPart({ workspace }: PartProps): JSX.Element {
  const mayChange = useMay(workspace, "owner");
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/members", { workspace }, { signal })).members,
    [workspace],
  );
  const grant = async (user: string, role: RoleName) => {
    const isDone = await attempt(() => call("PUT /api/v1/workspaces/{workspace}/members/{user}", { workspace, user, role }), `${user} is ${role} of ${workspace}.`);
    found.reload();
    return isDone;
  };
  return (
    <section class="stack" aria-label="Members">
      <ul class="muted plain-list">{ROLES.map((each) => <li key={each}><strong>{each}</strong> {ROLE_MEANINGS[each]}</li>)}</ul>
      {mayChange && <MemberForm onAdd={grant} />}
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !found.value.length && <Empty title="Nobody has a role in this workspace. Administrators may do everything." />}
      {found.value && found.value.length > 0 && (
        <Listing label="Members of the workspace" class="list narrow" columns={["User", "Role", mayChange && { hidden: "Actions" }]}>
          {found.value.map((member) => (
            <tr key={member.user + String(member.is_by_group)}>
              <td class="name">{member.user}</td>
              <td>
                {mayChange && !member.is_by_group ? (
                  <select
                    aria-label={`Role of ${member.user}`}
                    value={member.role}
                    onChange={(event) => void grant(member.user, event.currentTarget.value as RoleName)}
                  >
                    {ROLES.map((each) => <option key={each} value={each}>{each}</option>)}
                  </select>
                ) : (
                  <>{member.role}{member.is_by_group && <span class="muted small"> by a group</span>}</>
                )}
              </td>
              {mayChange && (
                <td class="actions">
                  {!member.is_by_group && (
                    <DangerButton
                      label="Remove"
                      name={`Remove ${member.user}`}
                      title={`Take the role from ${member.user}?`}
                      text={`${member.user} does not see ${workspace} any more. What ${member.user} submitted stays.`}
                      action="Take the role away"
                      done={`${member.user} has no role in ${workspace} any more.`}
                      work={() => call("DELETE /api/v1/workspaces/{workspace}/members/{user}", { workspace, user: member.user })}
                      onDone={found.reload}
                    />
                  )}
                </td>
              )}
            </tr>
          ))}
        </Listing>
      )}
    </section>
  );
}

function MemberForm({ onAdd }: { onAdd: (user: string, role: RoleName) => Promise<boolean> }): JSX.Element {
  const [user, setUser] = useState("");
  const [role, setRole] = useState<RoleName>("contributor");
  return (
    <form
      class="card form-row"
      aria-label="New member"
      onSubmit={async (event) => {
        event.preventDefault();
        if (await onAdd(user.trim(), role)) setUser("");
      }}
    >
      <label class="field"><span>User</span><input required value={user} onInput={(event) => setUser(event.currentTarget.value)} /></label>
      <label class="field">
        <span>Role</span>
        <select value={role} onChange={(event) => setRole(event.currentTarget.value as RoleName)}>
          {ROLES.map((each) => <option key={each} value={each}>{each}</option>)}
        </select>
      </label>
      <button type="submit" class="primary">Give the role</button>
    </form>
  );
}
