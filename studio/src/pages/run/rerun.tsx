import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress, navigate } from "../../address";
import { call } from "../../api/client";
import type { RunRecord } from "../../api/types";
import { Dialog } from "../../components/dialog";
import { notify, notifyError } from "../../components/feedback";
import { type ArgumentRow, formatArguments, parseArguments } from "./arguments";
import { nameOf, readSpec } from "./run_words";

/** Submit a run again with other arguments: a table of names and values. */
export function RerunDialog({ workspace, run, onClose }: { workspace: string; run: RunRecord; onClose: () => void }): JSX.Element {
  const spec = readSpec(run.spec);
  const isCommand = !spec?.script;
  const [rows, setRows] = useState(() => parseArguments((isCommand ? spec?.command : spec?.arguments) ?? []));
  const [name, setName] = useState(run.display_name);
  const [isBusy, setBusy] = useState(false);
  const change = (at: number, changes: Partial<ArgumentRow>) => setRows(rows.map((row, n) => (n === at ? { ...row, ...changes } : row)));

  async function submit(): Promise<void> {
    setBusy(true);
    const words = formatArguments(rows);
    try {
      const again = await call("POST /api/v1/workspaces/{workspace}/runs/{run_id}/rerun", {
        workspace,
        run_id: run.id,
        ...(isCommand ? { command: words } : { arguments: words }),
        display_name: name,
      });
      notify(`Submitted as ${nameOf(again)}.`);
      onClose();
      navigate(formatAddress(workspace, "runs", [again.id]));
    } catch (error) {
      notifyError(error);
      setBusy(false);
    }
  }

  return (
    <Dialog title="Rerun with changes" onClose={onClose}>
      <form
        class="stack-small"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <p class="muted">The code, the packages and all settings stay the same{isCommand ? "" : `; ${spec?.script} gets these arguments`}.</p>
        <label class="stack-small">
          <span>Name</span>
          <input value={name} placeholder="none" onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <table class="rerun-arguments">
          <thead>
            <tr><th scope="col">Argument</th><th scope="col">Value</th><th scope="col"><span class="hidden-label">Remove</span></th></tr>
          </thead>
          <tbody>
            {rows.map((row, n) => (
              <tr key={n}>
                <td>
                  <input class="mono" aria-label={`Name of argument ${n + 1}`} value={row.name} placeholder="without a name" onInput={(event) => change(n, { name: event.currentTarget.value.trim() })} />
                </td>
                <td>
                  <input
                    class="mono"
                    aria-label={`Value of ${row.name || `argument ${n + 1}`}`}
                    value={row.value ?? ""}
                    placeholder="none"
                    onInput={(event) => change(n, { value: event.currentTarget.value === "" && row.name ? undefined : event.currentTarget.value })}
                  />
                </td>
                <td>
                  <button type="button" class="plain" aria-label={`Remove ${row.name || `argument ${n + 1}`}`} onClick={() => setRows(rows.filter((_, at) => at !== n))}>×</button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <div>
          <button type="button" onClick={() => setRows([...rows, { name: "", value: "", isJoined: false }])}>Add an argument</button>
        </div>
        <div class="buttons">
          <button type="button" onClick={onClose}>Close</button>
          <button type="submit" class="primary" disabled={isBusy}>Submit</button>
        </div>
      </form>
    </Dialog>
  );
}
