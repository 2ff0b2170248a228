/** Registered environments and their builds. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress, useParameter } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { EnvironmentRecord } from "../../api/types";
import { attempt } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Facts } from "../../components/facts";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import type { PageProps } from "../page";
import { Builds } from "./builds";
import { readContents } from "./definition";

const REGISTER = `environment = Environment.from_conda_specification("training", "environment.yml")
environment.register(workspace)`;

export function EnvironmentsPage({ place, workspace }: PageProps): JSX.Element {
  const [name, version] = place.rest;
  return name ? <EnvironmentPart workspace={workspace} name={name} version={Number(version) || undefined} /> : <EnvironmentList workspace={workspace} />;
}

function EnvironmentList({ workspace }: { workspace: string }): JSX.Element {
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/environments", { workspace }, { signal })).environments,
    [workspace],
  );
  const [build, setBuild] = useParameter("build");
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  return (
    <div class="stack">
      <h1>Environments</h1>
      {!found.value.length && (
        <Empty title="No environment is registered yet.">
          <p class="muted">Runs build what they need by themselves. A registered environment has a name and versions.</p>
          <CodeBlock label="Register an environment" text={REGISTER} />
        </Empty>
      )}
      {found.value.length > 0 && (
        <Listing label="Registered environments" columns={["Name", { number: "Newest version" }, "Labels", "Python", { number: "Packages" }, "Registered"]}>
          {found.value.map((each) => {
            const contents = readContents(each.definition);
            return (
              <tr key={each.name}>
                <td class="name"><Link href={formatAddress(workspace, "environments", [each.name])}>{each.name}</Link></td>
                <td class="number">{each.version}</td>
                <td class="name"><LabelList labels={each.labels} /></td>
                <td class="kept-whole">{contents.isUserManaged ? "of the machine" : contents.python}</td>
                <td class="number">{contents.conda.length + contents.pip.length}</td>
                <td class="kept-whole"><Age at={each.created_at} /></td>
              </tr>
            );
          })}
        </Listing>
      )}
      <Builds workspace={workspace} chosen={build} onChoose={setBuild} />
    </div>
  );
}

function LabelList({ labels }: { labels: readonly string[] }): JSX.Element {
  return <span class="tags">{labels.map((each) => <span key={each} class="tag">{each}</span>)}</span>;
}

function EnvironmentPart({ workspace, name, version }: { workspace: string; name: string; version: number | undefined }): JSX.Element {
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/environments/{name}/versions", { workspace, name }, { signal })).versions,
    [workspace, name],
  );
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  const chosen = version === undefined ? found.value[0] : found.value.find((each) => each.version === version);
  return (
    <div class="stack">
      <p class="path"><Link href={formatAddress(workspace, "environments")}>Environments</Link></p>
      <h1>{name}</h1>
      {chosen ? <Definition workspace={workspace} environment={chosen} reload={found.reload} /> : <Empty title={`It has no version ${version}.`} />}
      <section class="stack-small" aria-label="Versions">
        <h2>Versions</h2>
        <Listing label="All versions" class="list narrow" columns={[{ number: "Version" }, "Labels", "Registered"]}>
          {found.value.map((each) => (
            <tr key={each.version} class={each.version === chosen?.version ? "current" : ""}>
              <td class="number"><Link href={formatAddress(workspace, "environments", [name, String(each.version)])}>{each.version}</Link></td>
              <td class="name"><LabelList labels={each.labels} /></td>
              <td class="kept-whole"><Age at={each.created_at} /></td>
            </tr>
          ))}
        </Listing>
      </section>
    </div>
  );
}

function Definition({ workspace, environment, reload }: { workspace: string; environment: EnvironmentRecord; reload: () => void }): JSX.Element {
  const contents = readContents(environment.definition);
  const code = `environment = Environment.get(workspace, ${JSON.stringify(environment.name)}, version="${environment.version}")\nestimator = Estimator(".", entry_script="train.py", environment_definition=environment)`;
  return (
    <>
      <div class="columns">
        <Facts
          facts={[
            ["Version", String(environment.version)],
            ["Labels", <EditLabels workspace={workspace} environment={environment} reload={reload} />],
            ["Python", contents.isUserManaged ? "of the machine it runs on: nothing is installed" : contents.python],
            ["From pip", contents.pip.length > 0 && <Packages names={contents.pip} />],
            ["From conda", contents.conda.length > 0 && <Packages names={contents.conda} />],
            ["Image", contents.image && <code>{contents.image}</code>],
            ["Variables", contents.variables.join(", ")],
          ]}
        />
        <CodeBlock label="Use it" text={code} />
      </div>
      <CodeBlock label="Definition" text={JSON.stringify(environment.definition, null, 2)} />
    </>
  );
}

function Packages({ names }: { names: readonly string[] }): JSX.Element {
  return <ul class="plain-list">{names.map((each) => <li key={each}><code>{each}</code></li>)}</ul>;
}

function EditLabels({ workspace, environment, reload }: { workspace: string; environment: EnvironmentRecord; reload: () => void }): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const [label, setLabel] = useState("");
  return (
    <div class="stack-small">
      {environment.labels.length > 0 && <LabelList labels={environment.labels} />}
      {!environment.labels.length && !mayChange && <span class="muted">none</span>}
      {mayChange && (
        <form
          class="row"
          onSubmit={async (event) => {
            event.preventDefault();
            const one = { workspace, name: environment.name, version: environment.version, labels: [label.trim()] };
            const isDone = await attempt(() => call("PUT /api/v1/workspaces/{workspace}/environments/{name}/versions/{version}/labels", one), "");
            if (!isDone) return;
            setLabel("");
            reload();
          }}
        >
          <input aria-label="New label" placeholder="new label" required value={label} onInput={(event) => setLabel(event.currentTarget.value)} />
          <button type="submit">Add label</button>
        </form>
      )}
    </div>
  );
}
