/** The users of the server, for administrators. */
import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { UserAnswer } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { CopyButton } from "../../components/code";
import { Dialog } from "../../components/dialog";
import { ErrorBox, Loading } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { Session } from "../../session";
import { formatDuration } from "../../text/numbers";

interface Link {
  user: string;
  url: string;
  seconds: number;
}

export function UsersPart(): JSX.Element {
  const found = useResource(async (signal) => (await call("GET /api/v1/users", {}, { signal })).users, []);
  const [link, setLink] = useState<Link>();
  const [name, setName] = useState("");
  return (
    <section class="stack" aria-label="Users">
      <form
        class="card form-row"
        aria-label="New user"
        onSubmit={async (event) => {
          event.preventDefault();
          const isDone = await attempt(() => call("POST /api/v1/users", { name: name.trim() }), `${name.trim()} is added. Give the user a role, and a sign-in link.`);
          if (!isDone) return;
          setName("");
          found.reload();
        }}
      >
        <label class="field"><span>Name</span><input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <button type="submit" class="primary">Add a user</button>
      </form>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && <UserTable users={found.value} reload={found.reload} onLink={setLink} />}
      {link && (
        <Dialog title={`Sign-in link for ${link.user}`} onClose={() => setLink(undefined)}>
          <p>It signs one browser in as {link.user}, once, within {formatDuration(link.seconds)}. Send it to nobody else.</p>
          <p class="row"><code class="secret">{link.url}</code><CopyButton text={link.url} label="Copy the link" /></p>
          <div class="buttons"><button type="button" class="primary" onClick={() => setLink(undefined)}>Done</button></div>
        </Dialog>
      )}
    </section>
  );
}

function UserTable({ users, reload, onLink }: { users: readonly UserAnswer[]; reload: () => void; onLink: (link: Link) => void }): JSX.Element {
  const me = useContext(Session);
  return (
    <Listing label="Users of the server" columns={["Name", "Administrator", "Identity", "Added", { hidden: "Actions" }]}>
      {users.map((user) => (
        <tr key={user.name}>
          <td class="name">{user.name}{user.name === me?.user && <span class="muted small"> you</span>}</td>
          <td>{user.is_admin ? "yes" : "no"}</td>
          <td class="name">{user.subject ?? <span class="muted">–</span>}</td>
          <td class="kept-whole"><Age at={user.created_at} /></td>
          <td class="actions">
            <button
              type="button"
              aria-label={`Sign-in link for ${user.name}`}
              onClick={() =>
                void attempt(async () => {
                  const made = await call("POST /api/v1/users/{user}/sign-in-link", { user: user.name });
                  onLink({ user: user.name, url: made.url, seconds: made.expires_in_seconds });
                }, "")
              }
            >
              Sign-in link
            </button>
            {user.name !== me?.user && <RightsButton user={user} reload={reload} />}
            {user.name !== me?.user && (
              <DangerButton
                label="Remove"
                name={`Remove ${user.name}`}
                title={`Remove the user ${user.name}?`}
                text="All tokens, roles and sessions of the user end at once. Runs of the user stay."
                action="Remove the user"
                done={`${user.name} is removed.`}
                work={() => call("DELETE /api/v1/users/{user}", { user: user.name })}
                onDone={reload}
              />
            )}
          </td>
        </tr>
      ))}
    </Listing>
  );
}

/** Makes a user an administrator, or no longer one. */
function RightsButton({ user, reload }: { user: UserAnswer; reload: () => void }): JSX.Element {
  const label = user.is_admin ? "Take administrator rights" : "Make administrator";
  return (
    <DangerButton
      label={label}
      name={`${label}: ${user.name}`}
      title={user.is_admin ? `Take the rights of an administrator from ${user.name}?` : `Make ${user.name} an administrator?`}
      text={user.is_admin ? "The roles in workspaces stay." : "An administrator may do everything in all workspaces, and manages users."}
      action={user.is_admin ? "Take the rights" : "Give the rights"}
      done={user.is_admin ? `${user.name} is no longer an administrator.` : `${user.name} is an administrator.`}
      work={() => call("PATCH /api/v1/users/{user}", { user: user.name, is_admin: !user.is_admin })}
      onDone={reload}
    />
  );
}
