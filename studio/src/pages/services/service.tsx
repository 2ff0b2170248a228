/** One scoring service: its state and traffic, a form to try it, its logs, keys and code. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatAddress, navigate } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ServiceRecord, ServiceTraffic } from "../../api/types";
import { attempt, DangerButton, usePolling } from "../../components/actions";
import { CopyButton } from "../../components/code";
import { Facts } from "../../components/facts";
import { ErrorBox, Loading } from "../../components/feedback";
import { Labels } from "../../components/labels";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Tabs } from "../../components/tabs";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import { formatBytes, formatDuration, formatNumber, toNumber } from "../../text/numbers";
import { ServiceMark } from "./index";
import { KeysPart } from "./keys";
import { LogsPart } from "./logs";
import { addSample, drawLine, formatLatency, listRates, summarizeRecent } from "./traffic";
import { TryPart } from "./try";
import { describeState, formatUri, isOnlyLocal } from "./words";

const TRAFFIC_SECONDS = 2;
const STATE_SECONDS = 3;

interface Props {
  workspace: string;
  name: string;
  tab: string;
}

export function ServicePart({ workspace, name, tab }: Props): JSX.Element {
  const found = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/services/{name}", { workspace, name }, { signal }), [workspace, name]);
  usePolling(found.reload, STATE_SECONDS);
  const mayChange = useMay(workspace, "contributor");
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  const service = found.value;
  const tabs = [["", "Overview"], ["try", "Try it"], ["logs", "Logs"], ["use", mayChange ? "Keys and code" : "Code"]] as const;
  const shown = tabs.some(([id]) => id === tab) ? tab : "";
  return (
    <div class="stack">
      <p class="path"><Link href={formatAddress(workspace, "services")}>Services</Link></p>
      <div class="row">
        <h1>{service.name}</h1>
        <ServiceMark service={service} />
        <span class="muted small" aria-live="polite">{describeState(service).text}</span>
        <span class="spacer" />
        {mayChange && (
          <DangerButton
            label="Delete"
            title={`Delete the service ${service.name}?`}
            text="It ends at once, and requests to it fail. Its models stay."
            action="Delete the service"
            done={`${service.name} is deleted.`}
            work={() => call("DELETE /api/v1/workspaces/{workspace}/services/{name}", { workspace, name })}
            onDone={() => navigate(formatAddress(workspace, "services"))}
          />
        )}
      </div>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      <Problem service={service} />
      <Tabs
        label="Parts of the service"
        current={shown}
        tabs={tabs.map(([id, label]) => ({ id, label, href: formatAddress(workspace, "services", [name, id]) }))}
      />
      {shown === "" && <Overview workspace={workspace} service={service} reload={found.reload} />}
      {shown === "try" && <TryPart key={service.serving} workspace={workspace} service={service} />}
      {shown === "logs" && <LogsPart key={service.generation} workspace={workspace} name={name} />}
      {shown === "use" && <KeysPart workspace={workspace} service={service} />}
    </div>
  );
}

function Problem({ service }: { service: ServiceRecord }): JSX.Element | null {
  const { headline, message, cause, hint } = service.error as Record<string, string | undefined>;
  const title = headline ?? message;
  if (!title && !service.warnings.length) return null;
  return (
    <div class={title ? "error-box" : "warning-box"} role="alert">
      {title && <strong>{title}</strong>}
      {cause && <pre class="cause" tabIndex={0} aria-label="Cause">{cause}</pre>}
      {hint && <p class="muted">{hint}</p>}
      {service.warnings.map((each) => <p key={each}>{each}</p>)}
    </div>
  );
}

function Overview({ workspace, service, reload }: { workspace: string; service: ServiceRecord; reload: () => void }): JSX.Element {
  const mayChange = useMay(workspace, "contributor");
  const spec = service.served ?? service.spec;
  const uri = formatUri(service, location.hostname);
  const relabel = async (change: { tags?: Record<string, unknown>; properties?: Record<string, string> }) => {
    const isDone = await attempt(() => call("PATCH /api/v1/workspaces/{workspace}/services/{name}", { workspace, name: service.name, ...change }), "");
    if (isDone) reload();
    return isDone;
  };
  return (
    <>
      <Traffic workspace={workspace} name={service.name} />
      <div class="columns">
        <Facts
          facts={[
            [
              "Address",
              uri && (
                <>
                  <span class="row"><code>{uri}</code><CopyButton text={uri} label="Copy the address" /></span>
                  {isOnlyLocal(service) && <div class="muted small">On the machine of the server only. Through the server it answers everywhere: see Code.</div>}
                </>
              ),
            ],
            ["Description", service.description],
            [
              "Models",
              <ul class="plain-list">
                {spec.models.map((each) => {
                  const [model = "", version = ""] = each.split(":");
                  return <li key={each}><Link href={formatAddress(workspace, "models", [model, version])}>{model}, version {version}</Link></li>;
                })}
              </ul>,
            ],
            ["Script", <code>{spec.code.entry_script}</code>],
            ["Environment", spec.environment_name && <Link href={formatAddress(workspace, "environments", [spec.environment_name])}>{spec.environment_name}</Link>],
            ["Key needed", spec.auth_enabled ? "yes" : "no: whoever reaches the address may ask"],
            ["Time limit", formatDuration(spec.timeout_ms / 1000)],
            ["Largest request", `${formatNumber(spec.max_body_mb)} MB`],
            ["Batches", spec.max_batch_size > 1 && `up to ${spec.max_batch_size} requests together`],
            ["Deployment", <>number {service.generation}, <Age at={service.updated_at} /></>],
          ]}
        />
        <div class="stack">
          <Labels
            title="Tags"
            values={service.tags}
            onAdd={mayChange ? (name, value) => relabel({ tags: { ...service.tags, [name]: value } }) : undefined}
            onRemove={mayChange ? (name) => relabel({ tags: Object.fromEntries(Object.entries(service.tags).filter(([each]) => each !== name)) }) : undefined}
          />
          <Labels
            title="Properties"
            values={service.properties}
            onAdd={mayChange ? (name, value) => relabel({ properties: { [name]: value } }) : undefined}
          />
        </div>
      </div>
    </>
  );
}

function Traffic({ workspace, name }: { workspace: string; name: string }): JSX.Element {
  const found = useResource((signal) => call("GET /api/v1/workspaces/{workspace}/services/{name}/traffic", { workspace, name }, { signal }), [workspace, name]);
  const [samples, setSamples] = useState<ServiceTraffic[]>([]);
  usePolling(found.reload, TRAFFIC_SECONDS);
  const latest = found.value;
  useEffect(() => {
    if (latest) setSamples((old) => addSample(old, latest));
  }, [latest]);
  const recent = summarizeRecent(samples);
  const rates = listRates(samples);
  const span = recent?.seconds ? `last ${formatDuration(Math.round(recent.seconds))}` : "since it was deployed";
  const ready = latest?.replicas.filter((each) => each.state === "ready").length ?? 0;
  return (
    <section class="stack" aria-label="Traffic">
      <div class="figures">
        <Figure name="Requests per second" value={recent?.rate === undefined ? "–" : formatNumber(Number(recent.rate.toFixed(2)))} note={`${latest?.requests ?? 0} in all`}>
          <svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true"><path d={drawLine(rates.length ? rates : [0, 0], 120, 28)} /></svg>
        </Figure>
        <Figure name="Median latency" value={recent?.median === undefined ? "–" : formatLatency(recent.median)} note={span} />
        <Figure name="95 of 100 within" value={recent?.p95 === undefined ? "–" : formatLatency(recent.p95)} note={span} />
        <Figure name="Failed" value={String(recent?.failed ?? 0)} note={`${recent?.refused ?? 0} refused, ${span}`} isBad={!!recent?.failed} />
        <Figure name="Being answered" value={String(latest?.in_flight ?? 0)} note="now" />
        <Figure name="Replicas ready" value={`${ready} of ${latest?.replicas.length ?? 0}`} note={latest && !latest.is_answering ? "not answering" : "now"} isBad={!!latest && !latest.is_answering} />
      </div>
      {latest && latest.replicas.length > 0 && (
        <Listing label="Replicas" class="list narrow" columns={["Replica", "State", { number: "Deployment" }, { number: "Restarts" }, { number: "CPU time" }, { number: "Most memory" }]}>
          {latest.replicas.map((each) => (
            <tr key={each.pid}>
              <td>Process {each.pid}</td>
              <td>{each.state}</td>
              <td class="number">{each.generation}</td>
              <td class="number">{each.restarts}</td>
              <td class="number">{formatDuration(toNumber(each.cpu_seconds))}</td>
              <td class="number">{formatBytes(each.peak_bytes)}</td>
            </tr>
          ))}
        </Listing>
      )}
    </section>
  );
}

function Figure({ name, value, note, isBad, children }: { name: string; value: string; note: string; isBad?: boolean; children?: JSX.Element }): JSX.Element {
  return (
    <div class="figure">
      <div class="muted small">{name}</div>
      <div class={isBad ? "figure-value bad" : "figure-value"}>{value}</div>
      <div class="muted small">{note}</div>
      {children}
    </div>
  );
}
