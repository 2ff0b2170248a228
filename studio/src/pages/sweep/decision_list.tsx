import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { formatAddress, useParameter } from "../../address";
import { addressOf, call, request } from "../../api/client";
import { useResource } from "../../api/resource";
import type { SweepView } from "../../api/types";
import { Empty } from "../../components/feedback";
import { Link } from "../../components/link";
import { type Decision, describeDecision, joinDecisions, parseDecision, parseDecisions } from "./decisions";

const LOG = "hyperdrive.txt";
const LAST_BYTES = 1024 * 1024;
const PAGE = 100;

/** Everything the policy decided, newest first, with the numbers. */
export function DecisionList({ workspace, view }: { workspace: string; view: SweepView }): JSX.Element {
  const [choice, setChoice] = useParameter("decisions", "cuts");
  const [limit, setLimit] = useState(PAGE);
  // Reports are what policies judge: a new one may have been followed by a decision.
  const reports = view.trials.reduce((sum, each) => sum + each.reports, 0);
  const log = useResource((signal) => readLog(workspace, view.run_id, signal), [workspace, view.run_id, reports, view.status]);
  const all = useMemo(() => {
    const cuts = view.trials.flatMap((each) => parseDecision(each.cut_reason) ?? []);
    return joinDecisions(parseDecisions(log.value ?? ""), cuts);
  }, [log.value, view.trials]);
  const shown = choice === "all" ? all : all.filter((each) => each.isCut);
  if (view.policy === "none") return <Empty title="This sweep has no policy: every trial runs to its end." />;
  const cuts = all.filter((each) => each.isCut).length;
  return (
    <section class="card" aria-labelledby="decisions-title">
      <div class="row">
        <h2 id="decisions-title">Decisions of the policy</h2>
        <span class="muted">{view.policy}</span>
        <span class="spacer" />
        <label class="row">
          <span class="muted">Show</span>
          <select value={choice} onChange={(event) => setChoice(event.currentTarget.value)}>
            <option value="cuts">cuts ({cuts})</option>
            <option value="all">all decisions ({all.length})</option>
          </select>
        </label>
      </div>
      {!shown.length && <p class="muted">{choice === "all" ? "The policy has decided nothing yet." : "The policy has not cut a trial."}</p>}
      <ol class="sweep-decisions" reversed>
        {shown.slice(0, limit).map((each) => <DecisionRow key={`${each.trial}/${each.interval}`} decision={each} workspace={workspace} view={view} />)}
      </ol>
      {shown.length > limit && <button type="button" onClick={() => setLimit(limit + PAGE)}>Show more</button>}
    </section>
  );
}

function DecisionRow({ decision, workspace, view }: { decision: Decision; workspace: string; view: SweepView }): JSX.Element {
  const trial = view.trials.find((each) => each.number === decision.trial);
  return (
    <li>
      <span class={decision.isCut ? "cut" : "kept"}>{describeDecision(decision)}</span>
      <span class="spacer" />
      {decision.at && <time dateTime={`${decision.at.replace(" ", "T")}Z`}>{decision.at} UTC</time>}
      {trial && <Link href={formatAddress(workspace, "runs", [trial.run_id])}>Open trial {decision.trial}</Link>}
    </li>
  );
}

async function readLog(workspace: string, runId: string, signal: AbortSignal): Promise<string> {
  const { logs } = await call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs", { workspace, run_id: runId }, { signal });
  const name = (logs ?? []).map((each) => String(each["name"])).find((each) => each.endsWith(LOG));
  if (name === undefined) return "";
  const address = addressOf("GET /api/v1/workspaces/{workspace}/runs/{run_id}/logs/{name}", { workspace, run_id: runId, name, last: LAST_BYTES });
  return (await request(address, { signal })).text();
}
