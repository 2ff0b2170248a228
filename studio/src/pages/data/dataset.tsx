/** One dataset: its versions, files and beginning. */
import type { JSX } from "preact";
import { formatAddress, navigate } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { DatasetRecord } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Facts } from "../../components/facts";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Labels } from "../../components/labels";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import { belongsTo, describeSource, folderBefore } from "./folders";
import { FileContents } from "./preview";

interface Props {
  workspace: string;
  name: string;
  version: number | undefined;
}

export function DatasetPart({ workspace, name, version }: Props): JSX.Element {
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/datasets/{name}/versions", { workspace, name }, { signal })).versions,
    [workspace, name],
  );
  const mayDelete = useMay(workspace, "owner");
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  const chosen = version === undefined ? found.value[0] : found.value.find((each) => each.version === version);
  return (
    <div class="stack">
      <p class="path"><Link href={formatAddress(workspace, "data")}>Data</Link></p>
      <div class="row">
        <h1>{name}</h1>
        <span class="spacer" />
        {mayDelete && (
          <DangerButton
            label="Delete"
            title={`Delete the dataset ${name}?`}
            text="All its versions are removed from the workspace. The files stay where they are."
            action="Delete the dataset"
            done={`${name} is deleted.`}
            work={() => call("DELETE /api/v1/workspaces/{workspace}/datasets/{name}", { workspace, name })}
            onDone={() => navigate(formatAddress(workspace, "data"))}
          />
        )}
      </div>
      {chosen ? <Details key={chosen.id} workspace={workspace} dataset={chosen} reload={found.reload} /> : <Empty title={`It has no version ${version}.`} />}
      <section class="stack-small" aria-label="Versions">
        <h2>Versions</h2>
        <Listing label="All versions" class="list narrow" columns={[{ number: "Version" }, "Registered", "Files"]}>
          {found.value.map((each) => (
            <tr key={each.id} class={each.id === chosen?.id ? "current" : ""}>
              <td class="number"><Link href={formatAddress(workspace, "data", ["datasets", name, String(each.version)])}>{each.version}</Link></td>
              <td class="kept-whole"><Age at={each.created_at} /></td>
              <td class="reason"><code>{each.definition.sources.map(describeSource).join(", ")}</code></td>
            </tr>
          ))}
        </Listing>
      </section>
    </div>
  );
}

function Details({ workspace, dataset, reload }: { workspace: string; dataset: DatasetRecord; reload: () => void }): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const { definition } = dataset;
  const retag = async (tags: Record<string, string>) => {
    const isDone = await attempt(() => call("PATCH /api/v1/workspaces/{workspace}/dataset-ids/{id}", { workspace, id: dataset.id, tags }), "");
    if (isDone) reload();
    return isDone;
  };
  const first = definition.sources.find((each) => each.store);
  return (
    <>
      {dataset.description && <p class="prose">{dataset.description}</p>}
      <div class="columns">
        <Facts
          facts={[
            ["Version", String(dataset.version ?? "")],
            ["Kind", definition.kind === "tabular" ? "Table" : "Files"],
            ["Registered", <Age at={dataset.created_at} />],
            ["Read as", definition.reader["format"] ? String(definition.reader["format"]) : ""],
            [
              "Files",
              <ul class="plain-list">
                {definition.sources.map((each) => (
                  <li key={describeSource(each)}>
                    {each.store
                      ? <Link href={formatAddress(workspace, "data", ["datastores", each.store, ...folderOf(each.path).split("/")])}><code>{describeSource(each)}</code></Link>
                      : <code>{each.path}</code>}
                  </li>
                ))}
              </ul>,
            ],
            ["Steps", definition.steps.length > 0 && definition.steps.map((each) => String(each["step"] ?? each["kind"] ?? Object.values(each)[0] ?? "")).join(", ")],
            ["Id", <code>{dataset.id}</code>],
          ]}
        />
        <div class="stack">
          <Labels
            title="Tags"
            values={dataset.tags}
            onAdd={mayChange ? (name, value) => retag({ ...dataset.tags, [name]: value }) : undefined}
            onRemove={mayChange ? (name) => retag(Object.fromEntries(Object.entries(dataset.tags).filter(([each]) => each !== name))) : undefined}
          />
          <CodeBlock
            label="Use it"
            text={`dataset = Dataset.get_by_name(workspace, ${JSON.stringify(dataset.name)}, version=${dataset.version})\nestimator = Estimator(".", entry_script="train.py", inputs=[dataset.as_named_input("data")])`}
          />
        </div>
      </div>
      {first && <FirstFile workspace={workspace} store={first.store} path={first.path} />}
    </>
  );
}

/** A path that names a file is shown in its folder. */
function folderOf(path: string): string {
  const folder = folderBefore(path);
  const last = folder.split("/").pop() ?? "";
  return last.includes(".") && folder === path ? folder.split("/").slice(0, -1).join("/") : folder;
}

/** The beginning of the first file, if the server opens the datastore. */
function FirstFile({ workspace, store, path }: { workspace: string; store: string; path: string }): JSX.Element | null {
  const files = useResource(
    async (signal) => {
      const answer = await call("GET /api/v1/workspaces/{workspace}/datastores/{name}/files", { workspace, name: store, prefix: folderBefore(path) }, { signal });
      return answer["files"] ?? [];
    },
    [workspace, store, path],
  );
  const first = files.value?.find((each) => belongsTo(path, each.name));
  if (!first) return null;
  return (
    <section class="stack-small" aria-label="Its beginning">
      <h2>{first.name.split("/").pop()}</h2>
      <FileContents workspace={workspace} store={store} path={first.name} />
    </section>
  );
}
