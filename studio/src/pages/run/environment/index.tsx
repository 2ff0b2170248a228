/** The environment of a run: what was asked for, what was installed, and how to get the same elsewhere. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatAddress } from "../../../address";
import { call } from "../../../api/client";
import { useResource } from "../../../api/resource";
import type { BuildReport, EnvironmentSpec, Pin, RunEnvironment } from "../../../api/types";
import { CodeBlock } from "../../../components/code";
import { Empty, ErrorBox, Loading } from "../../../components/feedback";
import { Facts } from "../../../components/facts";
import { Link } from "../../../components/link";
import { Age } from "../../../components/time";
import { formatBytes } from "../../../text/numbers";
import { quoteShell } from "../commands";
import type { RunTabProps } from "../tab";

interface Found {
  environment: RunEnvironment;
  build: BuildReport | undefined;
  buildLog: string | undefined;
}

export function EnvironmentTab({ workspace, run }: RunTabProps): JSX.Element {
  const found = useResource((signal) => readEnvironment(workspace, run.id, signal), [workspace, run.id, run.status]);
  if (!run.spec) return <Empty title="This run has no job, and so no environment of its own." />;
  if (found.error && !found.value) return <ErrorBox error={found.error} onRetry={found.reload} />;
  if (!found.value) return <Loading />;
  const { environment, build, buildLog } = found.value;
  const spec = environment.definition as unknown as Partial<EnvironmentSpec>;
  return (
    <div class="environment">
      <section class="stack" aria-label="Definition">
        <h2>{environment.name ? `${environment.name}${environment.version ? `, version ${environment.version}` : ""}` : "Definition"}</h2>
        <Facts facts={describeSpec(spec)} />
        <Requirements title="pip packages" lines={spec.pip_packages} />
        <Requirements title="conda packages" lines={spec.conda_packages} />
        <h2>Build</h2>
        <Facts facts={describeBuild(spec, build)} />
        {buildLog && (
          <p>
            <Link href={formatAddress(workspace, "runs", [run.id, "logs"], { log: buildLog })}>Log of the build</Link>
          </p>
        )}
        <Repetition environment={environment} spec={spec} runId={run.id} />
      </section>
      <Packages packages={environment.packages} lock={environment.lock} isOwn={spec.user_managed === true} />
    </div>
  );
}

async function readEnvironment(workspace: string, runId: string, signal: AbortSignal): Promise<Found> {
  const address = { workspace, run_id: runId };
  const [environment, { result }, { logs }] = await Promise.all([
    call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/environment", address, { signal }),
    call("POST /api/v1/workspaces/{workspace}/operations/environments.build_of_run", address, { signal }).catch(() => ({
      result: {} as Record<string, unknown>,
    })),
    call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs", address, { signal }),
  ]);
  const log = (logs ?? []).find((each) => each["name"] === "20_image_build_log.txt");
  return {
    environment,
    build: (result["build"] as BuildReport | null | undefined) ?? undefined,
    buildLog: log && String(log["name"]),
  };
}

function describeSpec(spec: Partial<EnvironmentSpec>): [string, string | undefined][] {
  return [
    ["Python", spec.user_managed ? spec.interpreter || "the one that submitted the run" : spec.python_version],
    ["Managed by", spec.user_managed ? "the user: nothing is installed" : "Trainmaster"],
    ["Container", spec.container?.image],
    ["Builds for", spec.accelerator && spec.accelerator !== "any" ? spec.accelerator : ""],
    ["Horovod", spec.horovod],
    ["Open MPI", spec.open_mpi ? "included" : ""],
    ["Channels", spec.conda_channels?.join(", ")],
    ["Releases up to", spec.exclude_newer],
  ];
}

function describeBuild(spec: Partial<EnvironmentSpec>, build: BuildReport | undefined): [string, JSX.Element | string][] {
  if (spec.user_managed) return [["State", "Nothing was built: the Python of the user was used as it was."]];
  if (!build) return [["State", "There is no build: it was not built yet, or it was removed."]];
  return [
    ["Name", <code>{build.name}</code>],
    ["Python", build.python],
    ["Built", <Age at={build.built_at} />],
    ["Size", formatBytes(build.bytes)],
    ["State", build.current ? "The newest of this definition." : "There is a newer build of this definition."],
  ];
}

function Requirements({ title, lines }: { title: string; lines: readonly string[] | undefined }): JSX.Element | null {
  if (!lines?.length) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul class="requirements">
        {lines.map((each, index) => <li key={index}><code>{each}</code></li>)}
      </ul>
    </div>
  );
}

function Repetition({ environment, spec, runId }: { environment: RunEnvironment; spec: Partial<EnvironmentSpec>; runId: string }): JSX.Element | null {
  const python = `from trainmaster import Run, Workspace\n\nrun = Run.get(Workspace.from_config(), ${JSON.stringify(runId)})\nenvironment = run.get_environment()`;
  const version = spec.python_version ? ` --python ${spec.python_version}` : "";
  return (
    <>
      <h2>The same elsewhere</h2>
      <CodeBlock label="In another run" text={python} />
      {environment.lock && (
        <CodeBlock
          label="Without Trainmaster"
          text={`trainmaster env show ${quoteShell(runId)} > environment.lock\nuv venv${version} same && uv pip install --python same -r environment.lock`}
        />
      )}
    </>
  );
}

function Packages({ packages, lock, isOwn }: { packages: readonly Pin[]; lock: string | null; isOwn: boolean }): JSX.Element {
  const [filter, setFilter] = useState("");
  const shown = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    return packages.filter((each) => each.name.toLowerCase().includes(wanted));
  }, [packages, filter]);
  const hasSources = packages.some((each) => each.source);
  return (
    <section class="stack" aria-label="Installed packages">
      <div class="row">
        <h2>Installed packages</h2>
        <span class="muted small">{packages.length || ""}</span>
      </div>
      {packages.length > 0 ? (
        <>
          <input type="search" placeholder="Filter by name" aria-label="Filter packages by name" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
          <table>
            <thead><tr><th scope="col">Package</th><th scope="col">Version</th>{hasSources && <th scope="col">Source</th>}</tr></thead>
            <tbody>
              {shown.map((each) => (
                <tr key={each.name}>
                  <td>{each.name}</td>
                  <td class="mono">{each.version}</td>
                  {hasSources && <td class="muted small environment-source">{each.source}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </>
      ) : (
        <p class="muted">{isOwn ? "Nothing is known of the packages in the user's own Python." : "There is no lock yet."}</p>
      )}
      {lock && <details><summary>The lock as a text</summary><CodeBlock label="environment.lock" text={lock} /></details>}
    </section>
  );
}
