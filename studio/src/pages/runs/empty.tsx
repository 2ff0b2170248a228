/** What stands instead of a table without rows. */
import type { JSX } from "preact";
import { Empty } from "../../components/feedback";

export function FirstSteps({ workspace }: { workspace: string }): JSX.Element {
  const connect = `trainmaster login ${location.origin}`;
  const script = `from trainmaster import Estimator, Experiment, Workspace

ws = Workspace.get(${JSON.stringify(workspace)}, server="${location.origin}")
estimator = Estimator(".", entry_script="train.py", compute_target="local")
run = Experiment(ws, "first").submit(estimator)
run.wait_for_completion(show_output=True)`;
  return (
    <Empty title="There are no runs in this workspace yet.">
      <div class="runs-first-steps">
        <p>Runs appear here as soon as they are submitted. Sign in from a terminal once:</p>
        <pre tabIndex={0} aria-label="Command to sign in">{connect}</pre>
        <p>Then submit a script, here from Python:</p>
        <pre tabIndex={0} aria-label="Program that submits a run">{script}</pre>
        <p>In the script, values are logged with <code>Run.get_context().log("loss", 0.5)</code>.</p>
      </div>
    </Empty>
  );
}

export function NothingFound({ onReset }: { onReset: () => void }): JSX.Element {
  return (
    <Empty title="No run matches.">
      <p class="muted">Change the filter, or show child runs and archived runs too.</p>
      <button type="button" onClick={onReset}>Show all runs</button>
    </Empty>
  );
}
