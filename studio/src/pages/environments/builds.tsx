/** What was built for environments: sizes, users, logs. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { BuildReport } from "../../api/types";
import { DangerButton } from "../../components/actions";
import { Dialog } from "../../components/dialog";
import { Facts } from "../../components/facts";
import { ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import { formatBytes } from "../../text/numbers";
import { searchBuilds } from "./definition";

interface Props {
  workspace: string;
  /** The name of the build that is shown, or the beginning of it. */
  chosen: string;
  onChoose: (name: string) => void;
}

export function Builds({ workspace, chosen, onChoose }: Props): JSX.Element {
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/environment-builds", { workspace }, { signal })).builds,
    [workspace],
  );
  const [search, setSearch] = useState("");
  const builds = found.value ?? [];
  const shown = chosen ? builds.find((each) => each.name.startsWith(chosen)) : undefined;
  return (
    <section class="stack-small" aria-label="Builds">
      <div class="row">
        <h2>Builds</h2>
        {builds.length > 0 && <span class="muted small">{formatBytes(builds.reduce((sum, each) => sum + each.own_bytes, 0))} of their own in all</span>}
        <span class="spacer" />
        {builds.length > 0 && (
          <input type="search" class="search" aria-label="Search builds" placeholder="Package or user" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        )}
      </div>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !builds.length && <p class="muted">Nothing is built yet. A run or a service builds its environment when it is first used.</p>}
      {builds.length > 0 && <BuildTable builds={searchBuilds(builds, search)} onChoose={onChoose} />}
      {shown && <BuildDialog workspace={workspace} build={shown} onClose={() => onChoose("")} onRemoved={found.reload} />}
    </section>
  );
}

function BuildTable({ builds, onChoose }: { builds: readonly BuildReport[]; onChoose: (name: string) => void }): JSX.Element {
  return (
    <Listing label="Builds of environments" columns={["Build", "Python", "Packages", { number: "Size" }, { number: "Of its own" }, "Used by", "Last use", "Built"]}>
      {builds.map((build) => (
        <tr key={build.name}>
          <td class="kept-whole">
            <button type="button" class="link" onClick={() => onChoose(build.name)}><code>{shorten(build.name)}</code></button>
            {!build.current && <span class="muted small"> replaced</span>}
          </td>
          <td>{build.python}</td>
          <td class="reason">{summarizePackages(build.packages)}</td>
          <td class="number">{formatBytes(build.bytes)}</td>
          <td class="number">{formatBytes(build.own_bytes)}</td>
          <td class="name">{build.users.length ? `${build.users[0]}${build.users.length > 1 ? ` and ${build.users.length - 1} more` : ""}` : <span class="muted">nobody</span>}</td>
          <td class="kept-whole"><Age at={build.last_used_at} /></td>
          <td class="kept-whole"><Age at={build.built_at} /></td>
        </tr>
      ))}
    </Listing>
  );
}

function shorten(name: string): string {
  const [digest = "", number = ""] = name.split(".");
  return `${digest.slice(0, 8)}.${number}`;
}

function summarizePackages(packages: readonly string[]): string {
  const shown = packages.slice(0, 4).join(", ");
  return packages.length > 4 ? `${shown} and ${packages.length - 4} more` : shown;
}

function BuildDialog({ workspace, build, onClose, onRemoved }: { workspace: string; build: BuildReport; onClose: () => void; onRemoved: () => void }): JSX.Element {
  const mayRemove = useMay(workspace, "owner");
  const log = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/environment-builds/{name}/log", { workspace, name: build.name }, { signal }))["text"] ?? "",
    [workspace, build.name],
  );
  return (
    <Dialog title={`Build ${shorten(build.name)}`} onClose={onClose}>
      <Facts
        facts={[
          ["Name", <code>{build.name}</code>],
          ["Folder", <code>{build.path}</code>],
          ["Size", `${formatBytes(build.bytes)}, ${formatBytes(build.own_bytes)} of its own`],
          ["Used by", build.users.length ? <Users workspace={workspace} users={build.users} /> : "nobody now"],
        ]}
      />
      <h3>Packages</h3>
      <ul class="plain-list short-list" tabIndex={0} aria-label="Packages">{build.packages.map((each) => <li key={each}><code>{each}</code></li>)}</ul>
      <h3>Log</h3>
      {log.error && <ErrorBox error={log.error} />}
      {log.value !== undefined && (
        log.value ? <pre class="cause" tabIndex={0} aria-label="Log of the build">{log.value}</pre> : <p class="muted">It was built for a run or a service, whose logs have it.</p>
      )}
      <div class="buttons">
        {mayRemove && !build.users.length && (
          <DangerButton
            label="Remove"
            title="Remove this build?"
            text="It is built again when a run needs it."
            action="Remove the build"
            done="The build is removed."
            work={() => call("POST /api/v1/workspaces/{workspace}/operations/environments.remove", { workspace, names: [build.name] })}
            onDone={() => {
              onClose();
              onRemoved();
            }}
          />
        )}
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

/** Runs are named by their ids, services as "service NAME". */
function Users({ workspace, users }: { workspace: string; users: readonly string[] }): JSX.Element {
  return (
    <ul class="plain-list short-list">
      {users.map((each) => {
        const service = /^service (.+)$/.exec(each)?.[1];
        const address = service ? formatAddress(workspace, "services", [service]) : formatAddress(workspace, "runs", [each]);
        return <li key={each}><Link href={address}>{each}</Link></li>;
      })}
    </ul>
  );
}
