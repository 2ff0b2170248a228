/** Who is signed in, with which rights, and to which server. */
import type { JSX } from "preact";
import { useContext } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import { attempt } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Facts } from "../../components/facts";
import { Session } from "../../session";
import { formatDate, toNumber } from "../../text/numbers";
import type { PartProps } from "./index";
import { ROLE_MEANINGS, type RoleName } from "./words";

export function AccountPart({ workspace }: PartProps): JSX.Element {
  const me = useContext(Session);
  const health = useResource((signal) => call("GET /health", {}, { signal }), []);
  const role = (me?.roles[workspace] ?? me?.roles["*"] ?? "") as RoleName | "";
  return (
    <section class="stack" aria-label="Account">
      <Facts
        facts={[
          ["User", me?.user],
          ["Rights", me?.is_admin ? "Administrator of the server: everything in all workspaces" : role ? `${capitalize(role)} of ${workspace}: ${ROLE_MEANINGS[role]}` : ""],
          ["Signed in until", me?.expires_at ? formatDate(toNumber(me.expires_at)) : ""],
          ["Server", location.origin],
          ["Version", health.value?.version],
        ]}
      />
      <div>
        <button
          type="button"
          onClick={async () => {
            if (await attempt(() => call("POST /login/sign-out", {}), "")) location.assign("/login");
          }}
        >
          Sign out
        </button>
      </div>
      <CodeBlock label="Use this server from your machine" text={`trainmaster login ${location.origin}`} />
    </section>
  );
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
