/** Scoring services: all of them, and one. */
import type { JSX } from "preact";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { ServiceRecord } from "../../api/types";
import { usePolling } from "../../components/actions";
import { CodeBlock } from "../../components/code";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import type { PageProps } from "../page";
import { ServicePart } from "./service";
import { describeState } from "./words";

const DEPLOY = `model = Model(workspace, "churn")
configuration = InferenceConfig("score.py", source_directory="scoring", environment=environment)
service = Model.deploy(workspace, "churn-scoring", [model], configuration)
service.wait_for_deployment(show_output=True)`;

export function ServicesPage({ place, workspace }: PageProps): JSX.Element {
  const [name, tab] = place.rest;
  return name ? <ServicePart workspace={workspace} name={name} tab={tab ?? ""} /> : <ServiceList workspace={workspace} />;
}

export function ServiceMark({ service }: { service: ServiceRecord }): JSX.Element {
  const { tone, text } = describeState(service);
  return <span class={`status status-${tone}`} title={text}>{service.state}</span>;
}

function ServiceList({ workspace }: { workspace: string }): JSX.Element {
  const found = useResource(
    async (signal) => (await call("GET /api/v1/workspaces/{workspace}/services", { workspace }, { signal })).services,
    [workspace],
  );
  usePolling(found.reload, 5);
  if (!found.value) return found.error ? <ErrorBox error={found.error} onRetry={found.reload} /> : <Loading />;
  return (
    <div class="stack">
      <h1>Services</h1>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value.length && (
        <Empty title="No model is deployed yet.">
          <CodeBlock label="Deploy a model" text={DEPLOY} />
          <CodeBlock label="Or on the command line" text={`trainmaster services deploy churn-scoring --model churn --script score.py --workspace ${workspace}`} />
        </Empty>
      )}
      {found.value.length > 0 && (
        <Listing label="Scoring services" columns={["State", "Name", "Models", { number: "Replicas" }, "Key needed", "Changed"]}>
          {found.value.map((service) => (
            <tr key={service.name}>
              <td><ServiceMark service={service} /></td>
              <td class="name">
                <Link href={formatAddress(workspace, "services", [service.name])}>{service.name}</Link>
                {service.description && <div class="muted small">{service.description}</div>}
              </td>
              <td class="name">{(service.served ?? service.spec).models.join(", ")}</td>
              <td class="number">{(service.served ?? service.spec).replicas}</td>
              <td>{(service.served ?? service.spec).auth_enabled ? "yes" : "no"}</td>
              <td class="kept-whole"><Age at={service.updated_at} /></td>
            </tr>
          ))}
        </Listing>
      )}
    </div>
  );
}
