/** Registered models: all names, and one with its versions. */
import type { JSX } from "preact";
import { formatAddress, useParameter } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ModelRecord } from "../../api/types";
import { CodeBlock } from "../../components/code";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { formatBytes } from "../../text/numbers";
import type { PageProps } from "../page";
import { searchModels } from "./listing";
import { ModelPart } from "./model";

const REGISTER = `run.register_model("churn", "outputs/model.pkl", tags={"stage": "trial"})`;

export function ModelsPage({ place, workspace }: PageProps): JSX.Element {
  const [name, version] = place.rest;
  return name ? <ModelPart workspace={workspace} name={name} version={Number(version) || undefined} /> : <ModelList workspace={workspace} />;
}

function ModelList({ workspace }: { workspace: string }): JSX.Element {
  const [search, setSearch] = useParameter("search");
  const found = useResource(
    (signal) => call("GET /api/v1/workspaces/{workspace}/models", { workspace, latest: true }, { signal }),
    [workspace],
  );
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  const models = searchModels(found.value.models, search);
  return (
    <div class="stack">
      <div class="row">
        <h1>Models</h1>
        <span class="spacer" />
        {found.value.models.length > 0 && (
          <input
            type="search"
            class="search"
            aria-label="Search models"
            placeholder="Name, framework or tag"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        )}
      </div>
      {!found.value.models.length && (
        <Empty title="No model is registered yet.">
          <CodeBlock label="Register a file of a run" text={REGISTER} />
          <CodeBlock label="Or a file of your machine" text={`trainmaster models register churn model.pkl --workspace ${workspace}`} />
        </Empty>
      )}
      {found.value.models.length > 0 && !models.length && <Empty title="No model matches the search." />}
      {models.length > 0 && <ModelTable workspace={workspace} models={models} />}
    </div>
  );
}

function ModelTable({ workspace, models }: { workspace: string; models: readonly ModelRecord[] }): JSX.Element {
  return (
    <Listing label="Registered models" columns={["Name", { number: "Newest version" }, "Framework", { number: "Size" }, "Tags", "Registered", "By"]}>
      {models.map((model) => (
        <tr key={model.name}>
          <td class="name"><Link href={formatAddress(workspace, "models", [model.name])}>{model.name}</Link></td>
          <td class="number">{model.version}</td>
          <td>{[model.framework, model.framework_version].filter(Boolean).join(" ")}</td>
          <td class="number">{formatBytes(model.byte_count)}</td>
          <td class="name">
            <span class="tags">
              {Object.entries(model.tags).map(([name, value]) => <span key={name} class="tag">{value ? `${name}=${value}` : name}</span>)}
            </span>
          </td>
          <td class="kept-whole"><Age at={model.created_at} /></td>
          <td class="name">{model.created_by}</td>
        </tr>
      ))}
    </Listing>
  );
}
