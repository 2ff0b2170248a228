/** The keys of a service, for those who may have them, and code that calls it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ServiceRecord } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { CodeBlock, CopyButton } from "../../components/code";
import { useMay } from "../../session";
import { findInput, makeSample } from "./form";
import { formatUri, isOnlyLocal, makeKey, writeCurl, writePython } from "./words";

const KEYS = ["primary", "secondary"] as const;

export function KeysPart({ workspace, service }: { workspace: string; service: ServiceRecord }): JSX.Element {
  const mayHaveKeys = useMay(workspace, "contributor");
  const hasKey = (service.served ?? service.spec).auth_enabled;
  const description = useResource(
    async (signal) => {
      if (!service.serving) return undefined;
      return call("GET /api/v1/workspaces/{workspace}/services/{name}/description", { workspace, name: service.name }, { signal });
    },
    [workspace, service.name, service.serving],
  );
  const schema = description.value && findInput(description.value);
  const sample = schema ? makeSample(schema) : { data: [] };
  const uri = formatUri(service, location.hostname) || "http://localhost:PORT/score";
  return (
    <div class="stack">
      {mayHaveKeys && hasKey && <Keys workspace={workspace} name={service.name} />}
      {!hasKey && <p class="muted">The service needs no key: whoever reaches its address may ask.</p>}
      <section class="stack-small" aria-label="Code">
        <h2>Call it</h2>
        <CodeBlock label="Python, from anywhere" text={writePython(workspace, location.origin, service.name, sample)} />
        <CodeBlock label={isOnlyLocal(service) ? "curl, on the machine of the server" : "curl"} text={writeCurl(uri, hasKey, sample)} />
      </section>
    </div>
  );
}

function Keys({ workspace, name }: { workspace: string; name: string }): JSX.Element {
  const [keys, setKeys] = useState<Record<string, string>>();
  const show = () =>
    attempt(async () => setKeys(await call("GET /api/v1/workspaces/{workspace}/services/{name}/keys", { workspace, name })), "");
  return (
    <section class="stack-small" aria-label="Keys">
      <h2>Keys</h2>
      <p class="muted">Either key opens the service. Replace one while clients use the other.</p>
      {!keys && <div><button type="button" onClick={() => void show()}>Show the keys</button></div>}
      {keys && (
        <>
          <ul class="plain-list stack-small">
            {KEYS.map((which) => (
              <li key={which} class="row">
                <span class="key-name">{which}</span>
                <code class="secret">{keys[which]}</code>
                <CopyButton text={keys[which] ?? ""} label={`Copy the ${which} key`} />
                <DangerButton
                  label="Replace"
                  name={`Replace the ${which} key`}
                  title={`Replace the ${which} key?`}
                  text="Clients that use the old key are refused from now on."
                  action="Replace the key"
                  done={`The ${which} key is replaced.`}
                  work={async () =>
                    setKeys(await call("PUT /api/v1/workspaces/{workspace}/services/{name}/keys/{which}", { workspace, name, which, key: makeKey() }))
                  }
                />
              </li>
            ))}
          </ul>
          <div><button type="button" onClick={() => setKeys(undefined)}>Hide the keys</button></div>
        </>
      )}
    </section>
  );
}
