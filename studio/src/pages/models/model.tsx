/** One model: its versions, what it is, where it comes from, and how to use it. */
import type { JSX } from "preact";
import { formatAddress, navigate } from "../../address";
import { addressOf, call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ModelLineage, ModelRecord } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Facts } from "../../components/facts";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Labels } from "../../components/labels";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { StatusMark } from "../../components/status";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import { formatBytes } from "../../text/numbers";
import { readFiles, writeLoading, writeScoring } from "./listing";
import { type Onnx, readOnnx } from "./onnx";

const MOST_FILES = 500;

interface Props {
  workspace: string;
  name: string;
  version: number | undefined;
}

export function ModelPart({ workspace, name, version }: Props): JSX.Element {
  const versions = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/models", { workspace, name }, { signal })).models,
    [workspace, name],
  );
  if (!versions.value) return versions.error ? <ErrorBox error={versions.error} onRetry={versions.reload} /> : <Loading />;
  const sorted = [...versions.value].sort((one, other) => other.version - one.version);
  const model = version === undefined ? sorted[0] : sorted.find((each) => each.version === version);
  return (
    <div class="stack">
      <p class="path"><Link href={formatAddress(workspace, "models")}>Models</Link></p>
      {model ? (
        <ModelDetails key={model.version} workspace={workspace} model={model} versions={sorted} reload={versions.reload} />
      ) : (
        <Empty title={sorted.length ? `Model "${name}" has no version ${version}.` : `There is no model "${name}".`}>
          {sorted.length > 0 && <p><Link href={formatAddress(workspace, "models", [name])}>The newest version</Link></p>}
        </Empty>
      )}
    </div>
  );
}

interface DetailsProps {
  workspace: string;
  model: ModelRecord;
  versions: readonly ModelRecord[];
  reload: () => void;
}

function ModelDetails({ workspace, model, versions, reload }: DetailsProps): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const mayDelete = useMay(workspace, "owner");
  const one = { workspace, name: model.name, version: model.version };
  const onnx = readOnnx(model.facts);
  const relabel = async (change: { add_tags?: Record<string, string>; remove_tags?: string[]; add_properties?: Record<string, string> }) => {
    const isDone = await attempt(() => call("PATCH /api/v1/workspaces/{workspace}/models/{name}/versions/{version}", { ...one, ...change }), "");
    if (isDone) reload();
    return isDone;
  };
  return (
    <>
      <div class="row">
        <h1>{model.name}</h1>
        <label class="row small">
          <span class="muted">Version</span>
          <select
            value={String(model.version)}
            onChange={(event) => navigate(formatAddress(workspace, "models", [model.name, event.currentTarget.value]))}
          >
            {versions.map((each, index) => (
              <option key={each.version} value={String(each.version)}>{`${each.version}${index ? "" : " (newest)"}`}</option>
            ))}
          </select>
        </label>
        <span class="spacer" />
        {mayDelete && (
          <DangerButton
            label="Delete this version"
            title={`Delete ${model.name}, version ${model.version}?`}
            text="Its files are removed, and its number is not used again. A version that a service uses cannot be deleted."
            action="Delete the version"
            done={`${model.name}, version ${model.version}, is deleted.`}
            work={() => call("DELETE /api/v1/workspaces/{workspace}/models/{name}/versions/{version}", one)}
            onDone={() => {
              navigate(formatAddress(workspace, "models", versions.length > 1 ? [model.name] : []));
              reload();
            }}
          />
        )}
      </div>
      {model.description && <p class="prose">{model.description}</p>}
      <div class="columns">
        <section class="stack" aria-label="About">
          <Facts
            facts={[
              ["Registered", <><Age at={model.created_at} />{model.created_by ? ` by ${model.created_by}` : ""}</>],
              ["Framework", [model.framework, model.framework_version].filter(Boolean).join(" ")],
              ["Size", `${formatBytes(model.byte_count)} in ${model.file_count} ${model.file_count === 1 ? "file" : "files"}`],
              ["Entry", <code>{model.entry}</code>],
              ["Needs", Object.entries(model.resources).filter(([, value]) => value).map(([key, value]) => `${key} ${String(value)}`).join(", ")],
            ]}
          />
          <Labels
            title="Tags"
            values={model.tags}
            onAdd={mayChange ? (name, value) => relabel({ add_tags: { [name]: value } }) : undefined}
            onRemove={mayChange ? (name) => relabel({ remove_tags: [name] }) : undefined}
          />
          <Labels
            title="Properties"
            values={model.properties}
            onAdd={mayChange ? (name, value) => relabel({ add_properties: { [name]: value } }) : undefined}
          />
        </section>
        <Lineage workspace={workspace} model={model} />
      </div>
      {onnx && <OnnxPart workspace={workspace} onnx={onnx} />}
      <Files workspace={workspace} model={model} />
      <section class="stack-small" aria-label="How to load it">
        <h2>How to load it</h2>
        <CodeBlock label="Anywhere" text={writeLoading(workspace, location.origin, model)} />
        <CodeBlock label="In a job or a scoring script" text={writeScoring(model)} />
      </section>
      {versions.length > 1 && <Versions workspace={workspace} versions={versions} current={model.version} />}
    </>
  );
}

function Lineage({ workspace, model }: { workspace: string; model: ModelRecord }): JSX.Element {
  const found = useResource(
    (signal) =>
      call(
        "GET /api/v1/workspaces/{workspace}/models/{name}/versions/{version}/lineage",
        { workspace, name: model.name, version: model.version },
        { signal },
      ),
    [workspace, model.name, model.version],
  );
  return (
    <section class="stack-small" aria-label="Where it comes from">
      <h2>Where it comes from</h2>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {found.value && <LineageFacts workspace={workspace} lineage={found.value} />}
    </section>
  );
}

function LineageFacts({ workspace, lineage }: { workspace: string; lineage: ModelLineage }): JSX.Element {
  const { run } = lineage;
  const hasOrigin = run || lineage.run_id || lineage.datasets.length || lineage.data.length;
  return (
    <>
      {!hasOrigin && <p class="muted">It was registered from files, not from a run.</p>}
      <Facts
        facts={[
          [
            "Run",
            run ? (
              <span class="row">
                <Link href={formatAddress(workspace, "runs", [run.run_id])}>{run.display_name || run.run_id}</Link>
                <StatusMark status={run.status} />
              </span>
            ) : lineage.run_id && <span class="muted">{lineage.run_id} (deleted)</span>,
          ],
          ["Experiment", lineage.experiment],
          [
            "Datasets",
            lineage.datasets.length > 0 && (
              <ul class="plain-list">
                {lineage.datasets.map((each) => (
                  <li key={each.role + each.id} class="row">
                    {each.name ? (
                      <Link href={formatAddress(workspace, "data", ["datasets", each.name, ...(each.version ? [String(each.version)] : [])])}>
                        {each.name}{each.version ? `, version ${each.version}` : ""}
                      </Link>
                    ) : (
                      <span>{each.id}</span>
                    )}
                    {each.role && <span class="muted">as {each.role}</span>}
                  </li>
                ))}
              </ul>
            ),
          ],
          ["Data", lineage.data.length > 0 && <ul class="plain-list">{lineage.data.map((each) => <li key={each}><code>{each}</code></li>)}</ul>],
          ["Environment", lineage.environment && <Link href={formatAddress(workspace, "environments", [], { build: lineage.environment })}><code>{lineage.environment.slice(0, 12)}</code></Link>],
          [
            "Served by",
            lineage.services.length > 0
              ? <ul class="plain-list">{lineage.services.map((each) => <li key={each}><Link href={formatAddress(workspace, "services", [each])}>{each}</Link></li>)}</ul>
              : <span class="muted">no service</span>,
          ],
        ]}
      />
    </>
  );
}

function OnnxPart({ workspace, onnx }: { workspace: string; onnx: Onnx }): JSX.Element {
  const [sourceName = "", sourceVersion = ""] = onnx.source.split(":");
  return (
    <section class="stack-small" aria-label="ONNX">
      <h2>ONNX</h2>
      <Facts
        facts={[
          ["Agreement", onnx.parity && <><div>{onnx.parity.text}</div><div class="muted small">{onnx.parity.tried}</div></>],
          ["Converted from", onnx.source && <Link href={formatAddress(workspace, "models", [sourceName, sourceVersion])}>{onnx.source}</Link>],
          ["Exported from", onnx.exporter],
          ["Quantized", onnx.quantized],
          ["Opset", onnx.opset],
          ["Notes", onnx.notes.length > 0 && <ul class="plain-list">{onnx.notes.map((each) => <li key={each}>{each}</li>)}</ul>],
        ]}
      />
      <Listing label="Inputs and outputs" class="list narrow" columns={["Tensor", "Name", "Type", "Shape"]}>
        {[...onnx.inputs.map((each) => ["Input", each] as const), ...onnx.outputs.map((each) => ["Output", each] as const)].map(([kind, each]) => (
          <tr key={kind + each.name}>
            <td>{kind}</td>
            <td class="name"><code>{each.name}</code></td>
            <td>{each.type}</td>
            <td>{each.shape}</td>
          </tr>
        ))}
      </Listing>
    </section>
  );
}

function Files({ workspace, model }: { workspace: string; model: ModelRecord }): JSX.Element {
  const found = useResource(
    async (signal) => readFiles(await call("GET /api/v1/workspaces/{workspace}/model-lists/{digest}", { workspace, digest: model.manifest }, { signal })),
    [workspace, model.manifest],
  );
  const files = found.value ?? [];
  return (
    <section class="stack-small" aria-label="Files">
      <h2>Files</h2>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      <Listing label="Files of the model" columns={["File", { number: "Size" }, { hidden: "Download" }]}>
        {files.slice(0, MOST_FILES).map((file) => (
          <tr key={file.path}>
            <td class="name"><code>{file.path}</code></td>
            <td class="number">{formatBytes(file.size)}</td>
            <td class="actions">
              <a
                href={addressOf("GET /api/v1/workspaces/{workspace}/contents/{kind}/{digest}", {
                  workspace, kind: "models", digest: file.digest, name: file.path.split("/").pop() ?? "",
                })}
                aria-label={`Download ${file.path}`}
                download
              >
                Download
              </a>
            </td>
          </tr>
        ))}
      </Listing>
      {files.length > MOST_FILES && <p class="muted">and {files.length - MOST_FILES} more files</p>}
    </section>
  );
}

function Versions({ workspace, versions, current }: { workspace: string; versions: readonly ModelRecord[]; current: number }): JSX.Element {
  return (
    <section class="stack-small" aria-label="Versions">
      <h2>Versions</h2>
      <Listing label="All versions" columns={[{ number: "Version" }, "Registered", "By", "Framework", { number: "Size" }, "Tags"]}>
        {versions.map((each) => (
          <tr key={each.version} class={each.version === current ? "current" : ""}>
            <td class="number"><Link href={formatAddress(workspace, "models", [each.name, String(each.version)])}>{each.version}</Link></td>
            <td class="kept-whole"><Age at={each.created_at} /></td>
            <td class="name">{each.created_by}</td>
            <td>{[each.framework, each.framework_version].filter(Boolean).join(" ")}</td>
            <td class="number">{formatBytes(each.byte_count)}</td>
            <td class="name">{Object.entries(each.tags).map(([name, value]) => (value ? `${name}=${value}` : name)).join(", ")}</td>
          </tr>
        ))}
      </Listing>
    </section>
  );
}
