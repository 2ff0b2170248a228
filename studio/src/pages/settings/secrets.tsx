/** Secrets of the workspace. They can be set and deleted, and never be read here. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import { attempt, DangerButton } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { useMay } from "../../session";
import type { PartProps } from "./index";

export function SecretsPart({ workspace }: PartProps): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/secrets", { workspace }, { signal })).secrets,
    [workspace],
  );
  return (
    <section class="stack" aria-label="Secrets">
      <p class="muted prose">Jobs read secrets by their names. Nobody sees a value here again, and logs hide it.</p>
      {mayChange && (
        <form
          class="card form-row"
          aria-label="New secret"
          autocomplete="off"
          onSubmit={async (event) => {
            event.preventDefault();
            const isDone = await attempt(() => call("PUT /api/v1/workspaces/{workspace}/secrets/{name}", { workspace, name: name.trim(), value }), `${name.trim()} is kept.`);
            if (!isDone) return;
            setName("");
            setValue("");
            found.reload();
          }}
        >
          <label class="field"><span>Name</span><input required autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
          <label class="field"><span>Value</span><input required type="password" autocomplete="new-password" value={value} onInput={(event) => setValue(event.currentTarget.value)} /></label>
          <button type="submit" class="primary">Keep the secret</button>
        </form>
      )}
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !found.value.length && <Empty title="The workspace has no secrets." />}
      {found.value && found.value.length > 0 && (
        <Listing label="Names of secrets" class="list narrow" columns={["Name", mayChange && { hidden: "Actions" }]}>
          {found.value.map((each) => (
            <tr key={each}>
              <td class="name"><code>{each}</code></td>
              {mayChange && (
                <td class="actions">
                  <DangerButton
                    label="Delete"
                    name={`Delete ${each}`}
                    title={`Delete the secret ${each}?`}
                    text="Jobs that ask for it fail from now on."
                    action="Delete the secret"
                    done={`${each} is deleted.`}
                    work={() => call("DELETE /api/v1/workspaces/{workspace}/secrets/{name}", { workspace, name: each })}
                    onDone={found.reload}
                  />
                </td>
              )}
            </tr>
          ))}
        </Listing>
      )}
      <CodeBlock label="Read one in a job" text={`Run.get_context().get_secret("NAME")`} />
    </section>
  );
}
