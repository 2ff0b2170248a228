/** Logs that are not shown at first: those of attempts that failed, and those of the system. */
import type { JSX } from "preact";
import { formatBytes } from "../../../text/numbers";
import { setParameters } from "../../../address";
import { type Groups, nameLog } from "./ranks";
import type { LogInfo } from "./reader";

export function OtherLogs({ groups, name }: { groups: Groups; name: string }): JSX.Element | null {
  if (!groups.attempts.length && !groups.system.length) return null;
  return (
    <div class="log-others">
      <LogList title="Earlier attempts" logs={groups.attempts} name={name} />
      <LogList title="System logs" logs={groups.system} name={name} />
    </div>
  );
}

function LogList({ title, logs, name }: { title: string; logs: readonly LogInfo[]; name: string }): JSX.Element | null {
  if (!logs.length) return null;
  return (
    <details open={logs.some((each) => each.name === name)}>
      <summary>{`${title} (${logs.length})`}</summary>
      <ul>
        {logs.map((each) => (
          <li key={each.identity}>
            <button
              type="button"
              class="plain"
              aria-pressed={each.name === name}
              onClick={() => setParameters({ log: each.name === name ? undefined : each.name, line: undefined }, { replace: false })}
            >
              {nameLog(each)}
            </button>
            <span class="muted small">{formatBytes(each.size)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
