/** Where a run comes from, and what came of it. */
import type { ComponentChildren, JSX } from "preact";
import { formatAddress } from "../../../address";
import type { DatasetLink, ModelLink, RunLineage, RunLink } from "../../../api/types";
import { type Fact, Facts } from "../../../components/facts";
import { Link } from "../../../components/link";

export function Lineage({ workspace, lineage }: { workspace: string; lineage: RunLineage }): JSX.Element | null {
  const runs = (links: readonly RunLink[]) => links.length > 0 && list(links.map((each) => [each.run_id, <RunLinkElement key={each.run_id} {...{ workspace }} run={each} />]));
  const facts: Fact[] = [
    ["Parent", lineage.parent && <RunLinkElement workspace={workspace} run={lineage.parent} />],
    [lineage.is_resumed ? "Resumes" : "Runs again", lineage.origin ? <RunLinkElement workspace={workspace} run={lineage.origin} /> : lineage.origin_id && <code>{lineage.origin_id}</code>],
    ["Run again as", runs(lineage.reruns)],
    ["Resumed by", runs(lineage.resumed_by)],
    ["Data in", lineage.data.length > 0 && list(lineage.data.map((each) => [each.name, <DataElement key={each.name} text={`${each.datastore}/${each.path}`} note={each.mode} />]))],
    ["Datasets in", lineage.datasets_in.length > 0 && list(lineage.datasets_in.map((each, n) => [String(n), <Dataset key={n} {...{ workspace }} dataset={each} />]))],
    ["Datasets out", lineage.datasets_out.length > 0 && list(lineage.datasets_out.map((each, n) => [String(n), <Dataset key={n} {...{ workspace }} dataset={each} />]))],
    ["Models", lineage.models.length > 0 && list(lineage.models.map((each) => [`${each.name}:${each.version}`, <Model key={each.name} {...{ workspace }} model={each} />]))],
  ];
  const shown = facts.filter(([, value]) => value);
  if (!shown.length) return null;
  return (
    <section class="card stack-small" aria-label="Lineage">
      <h2>Lineage</h2>
      <Facts facts={shown} />
    </section>
  );
}

function list(items: readonly (readonly [string, ComponentChildren])[]): JSX.Element {
  return <ul class="plain-list">{items.map(([key, item]) => <li key={key}>{item}</li>)}</ul>;
}

function RunLinkElement({ workspace, run }: { workspace: string; run: RunLink }): JSX.Element {
  return <Link href={formatAddress(workspace, run.type === "hyperdrive" ? "sweeps" : "runs", [run.run_id])}>{run.display_name || run.run_id}</Link>;
}

function DataElement({ text, note }: { text: string; note: string }): JSX.Element {
  return <>{text} <span class="muted">{note}</span></>;
}

function Dataset({ workspace, dataset }: { workspace: string; dataset: DatasetLink }): JSX.Element {
  const { name, version, role, id } = dataset;
  const address = formatAddress(workspace, "data", ["datasets", name, ...(version ? [String(version)] : [])]);
  return (
    <>
      {name ? <Link href={address}>{name}{version ? ` version ${version}` : ""}</Link> : <code>{id}</code>} <span class="muted">{role}</span>
    </>
  );
}

function Model({ workspace, model }: { workspace: string; model: ModelLink }): JSX.Element {
  return (
    <>
      <Link href={formatAddress(workspace, "models", [model.name, String(model.version)])}>{model.name} version {model.version}</Link>
      {model.services.length > 0 && (
        <>
          <span class="muted"> served by </span>
          {model.services.map((each, n) => (
            <>
              {n > 0 && ", "}
              <Link key={each} href={formatAddress(workspace, "services", [each])}>{each}</Link>
            </>
          ))}
        </>
      )}
    </>
  );
}
