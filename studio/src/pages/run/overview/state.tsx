/** Why a run is as it is: what it waits for, or why it failed. */
import type { JSX } from "preact";
import { formatAddress } from "../../../address";
import type { FailedAttempt, RankStack, RunExplanation, RunRecord } from "../../../api/types";
import { Link } from "../../../components/link";
import { StatusMark } from "../../../components/status";
import { Age } from "../../../components/time";
import { describeStatus } from "../../../text/status";
import { formatDuration, toNumber } from "../../../text/numbers";
import { plainText } from "../logs/ansi";

const MOST_LINES = 30;

interface Props {
  workspace: string;
  run: RunRecord;
  explanation: RunExplanation | undefined;
}

export function StateBox({ workspace, run, explanation }: Props): JSX.Element {
  const { tone } = describeStatus(run.status);
  return (
    <section class={`state-box state-${tone}`} aria-label="State" aria-live="polite">
      <p class="state-line">
        <StatusMark status={run.status} />
        <strong>{explanation ? headlineOf(explanation) : run.waiting_for || describeStatus(run.status).label}</strong>
        {!explanation?.code && run.nodes.length > 0 && <span class="muted">{describePlace(run)}</span>}
      </p>
      {explanation && <Failure workspace={workspace} run={run} explanation={explanation} />}
      {explanation && explanation.attempts.length > 0 && <Attempts attempts={explanation.attempts} />}
    </section>
  );
}

function describePlace({ target, nodes }: RunRecord): string {
  return `${target}, ${nodes.length === 1 ? "node" : "nodes"} ${nodes.join(", ")}`;
}

function headlineOf({ exception_type: type, exception_message: message, reason }: RunExplanation): string {
  if (!type) return reason;
  return message ? `${type}: ${message}` : type;
}

function Failure({ workspace, run, explanation }: Required<Props> & { explanation: RunExplanation }): JSX.Element | null {
  const { reason, code, hint, rank, node, exit_code: exitCode, signal, causes, last_lines: lines, stacks, message } = explanation;
  if (!code) return null;
  const where = [
    rank === null ? "" : `Rank ${rank}`,
    node === null ? "" : `node ${node}`,
    signal ? `ended by ${signal}` : exitCode === null ? "" : `exit code ${exitCode}`,
    explanation.hang_seconds === null ? "" : `silent for ${formatDuration(toNumber(explanation.hang_seconds))}`,
  ].filter(Boolean);
  const shown = lines.slice(-MOST_LINES);
  const rest = message.split("\n").slice(1).join("\n").trim();
  return (
    <>
      {!reason.endsWith(headlineOf(explanation)) && <p>{reason}</p>}
      {where.length > 0 && <p class="muted">{where.join(", ")}</p>}
      {rest && !shown.length && <pre class="state-text" tabIndex={0} aria-label="The whole error">{rest}</pre>}
      {hint && <p>{hint}</p>}
      {causes.length > 0 && (
        <p>
          <span class="muted">Caused by </span>
          {causes.join(", ")}
        </p>
      )}
      {shown.length > 0 && (
        <figure class="state-lines">
          <figcaption class="row small">
            <span class="muted">Last lines{rank === null ? "" : ` of rank ${rank}`}</span>
            <Link href={formatAddress(workspace, "runs", [run.id, "logs"], { ranks: rank === null ? undefined : String(rank) })}>All logs</Link>
          </figcaption>
          <pre tabIndex={0} aria-label="Last lines" ref={showEnd}>{shown.map(plainText).join("\n")}</pre>
        </figure>
      )}
      {stacks.length > 0 && <Stacks stacks={stacks} />}
    </>
  );
}

/** The last lines say what went wrong. */
function showEnd(element: HTMLElement | null): void {
  element?.scrollTo(0, element.scrollHeight);
}

function Stacks({ stacks }: { stacks: readonly RankStack[] }): JSX.Element {
  return (
    <section aria-label="Where each rank was">
      <h3>Where each rank was when the run was ended</h3>
      {stacks.map((each) => (
        <details key={each.rank} class="state-stack">
          <summary>
            Rank {each.rank} <span class="muted mono">{each.lines[0] ?? ""}</span>
          </summary>
          <pre tabIndex={0}>{each.text}</pre>
        </details>
      ))}
    </section>
  );
}

function Attempts({ attempts }: { attempts: readonly FailedAttempt[] }): JSX.Element {
  return (
    <details class="state-stack">
      <summary>{attempts.length === 1 ? "1 earlier attempt failed" : `${attempts.length} earlier attempts failed`}</summary>
      <ol class="state-attempts">
        {attempts.map((each) => (
          <li key={each.number} value={each.number}>
            {each.error.message.split("\n")[0]} <span class="muted"><Age at={each.ended_at} /></span>
          </li>
        ))}
      </ol>
    </details>
  );
}
