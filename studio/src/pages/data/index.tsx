/** Datastores and datasets: what there is, and what is in them. */
import type { JSX } from "preact";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import { CodeBlock } from "../../components/code";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import type { PageProps } from "../page";
import { DatasetPart } from "./dataset";
import { DatastorePart } from "./datastore";
import { describeSource, describeStore } from "./folders";

const REGISTER_DATASET = `datastore = workspace.get_default_datastore()
datastore.upload("./data", target_path="customers")
dataset = Dataset.Tabular.from_delimited_files((datastore, "customers/*.csv"))
dataset.register(workspace, "customers")`;

export function DataPage({ place, workspace }: PageProps): JSX.Element {
  const [kind, name, ...rest] = place.rest;
  if (kind === "datastores" && name) return <DatastorePart workspace={workspace} name={name} folder={rest.join("/")} />;
  if (kind === "datasets" && name) return <DatasetPart workspace={workspace} name={name} version={Number(rest[0]) || undefined} />;
  return <DataList workspace={workspace} />;
}

function DataList({ workspace }: { workspace: string }): JSX.Element {
  const found = useResource(
    async (signal) => {
      const [{ datastores }, { datasets }] = await Promise.all([
        call("GET /api/v1/workspaces/{workspace}/datastores", { workspace }, { signal }),
        call("GET /api/v1/workspaces/{workspace}/datasets", { workspace }, { signal }),
      ]);
      return { datastores, datasets };
    },
    [workspace],
  );
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  const { datastores, datasets } = found.value;
  return (
    <div class="stack">
      <h1>Data</h1>
      <section class="stack-small" aria-label="Datasets">
        <h2>Datasets</h2>
        {!datasets.length && (
          <Empty title="No dataset is registered yet.">
            <CodeBlock label="Upload files and register them" text={REGISTER_DATASET} />
          </Empty>
        )}
        {datasets.length > 0 && (
          <Listing label="Registered datasets" columns={["Name", { number: "Newest version" }, "Kind", "Files", "Registered"]}>
            {datasets.map((each) => (
              <tr key={each.id}>
                <td class="name">
                  <Link href={formatAddress(workspace, "data", ["datasets", each.name])}>{each.name}</Link>
                  {each.description && <div class="muted small">{each.description}</div>}
                </td>
                <td class="number">{each.version}</td>
                <td>{each.definition.kind === "tabular" ? "Table" : "Files"}</td>
                <td class="reason"><code>{each.definition.sources.map(describeSource).join(", ")}</code></td>
                <td class="kept-whole"><Age at={each.created_at} /></td>
              </tr>
            ))}
          </Listing>
        )}
      </section>
      <section class="stack-small" aria-label="Datastores">
        <h2>Datastores</h2>
        <Listing label="Registered datastores" columns={["Name", "Kind", "Address"]}>
          {datastores.map((each) => (
            <tr key={each.name}>
              <td class="name">
                <Link href={formatAddress(workspace, "data", ["datastores", each.name])}>{each.name}</Link>
                {each.is_default && <div class="muted small">default</div>}
              </td>
              <td class="kept-whole">{describeStore(each.url)}</td>
              <td class="reason"><code>{each.url}</code></td>
            </tr>
          ))}
        </Listing>
      </section>
    </div>
  );
}
