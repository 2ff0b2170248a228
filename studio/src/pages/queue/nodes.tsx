/** The nodes of a target as a grid: who has which. */
import type { JSX } from "preact";
import { formatAddress } from "../../address";
import type { QueueEntry, TargetRecord } from "../../api/types";
import { Link } from "../../components/link";
import { assignNodes, isCluster, isUnlimited, numberRuns } from "./compute";

const COLORS = 10;
const MOST_NODES = 512;

interface Props {
  workspace: string;
  target: TargetRecord;
  queue: readonly QueueEntry[];
}

export function NodeGrid({ workspace, target, queue }: Props): JSX.Element {
  const nodes = assignNodes(target, queue).filter((node) => node.runs.length || !isUnlimited(target));
  const numbers = numberRuns(nodes);
  const shown = nodes.slice(0, MOST_NODES);
  // Others use a cluster, too: only its scheduler knows whether its nodes are free.
  const unused = isCluster(target) ? { text: "unused", title: "No run of this workspace uses it" } : { text: "free", title: "Free" };
  return (
    <>
      <ul class="nodes" aria-label={`Nodes of ${target.name}`}>
        {shown.map((node) => {
          const run = node.runs[0];
          if (!run) {
            return (
              <li key={node.index} class="node node-free" title={unused.title}>
                <span class="node-number">{node.index}</span>
                <span class="node-user">{unused.text}</span>
              </li>
            );
          }
          const color = ((numbers.get(run.run_id) ?? 0) % COLORS) + 1;
          const more = node.runs.length > 1 ? ` +${node.runs.length - 1}` : "";
          return (
            <li key={node.index}>
              <Link
                class="node node-used"
                href={formatAddress(workspace, "runs", [run.run_id])}
                style={{ borderLeftColor: `var(--series-${color})` }}
                title={`Node ${node.index}: ${run.display_name || run.run_id} of ${run.submitted_by}`}
              >
                <span class="node-number">{node.index}</span>
                <span class="node-user">{(run.submitted_by || run.experiment) + more}</span>
              </Link>
            </li>
          );
        })}
      </ul>
      {nodes.length > shown.length && <p class="muted small">and {nodes.length - shown.length} more nodes</p>}
    </>
  );
}
