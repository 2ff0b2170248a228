/** Which runs of an experiment are kept, and what a rule would delete. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatAddress } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { RetentionPlan, RetentionRule } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { Dialog } from "../../components/dialog";
import { Empty, ErrorBox, Loading, notifyError } from "../../components/feedback";
import { Link } from "../../components/link";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { useMay } from "../../session";
import { describePlan } from "./channels";
import type { PartProps } from "./index";

const MOST_SHOWN = 200;

export function RetentionPart({ workspace }: PartProps): JSX.Element {
  const mayChange = useMay(workspace, "owner");
  const [edited, setEdited] = useState<RetentionRule | "new">();
  const found = useResource(
    async (signal) => (await call("POST /api/v1/workspaces/{workspace}/operations/retention.list", { workspace }, { signal })).result,
    [workspace],
  );
  return (
    <section class="stack" aria-label="Retention">
      <p class="muted prose">A rule says which ended runs of an experiment are kept. The others are deleted an hour after their end. Runs that models or services come from always stay.</p>
      {mayChange && <div><button type="button" class="primary" onClick={() => setEdited("new")}>Add a rule</button></div>}
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !found.value.length && <Empty title="There are no rules: every run is kept." />}
      {found.value && found.value.length > 0 && (
        <Listing label="Retention rules" columns={["Experiment", "Keeps", "Since", { hidden: "Actions" }]}>
          {found.value.map((each) => (
            <tr key={each.experiment}>
              <td class="name">{each.experiment}</td>
              <td><code>{each.rule}</code></td>
              <td><Age at={each.set_at} /></td>
              <td class="actions">
                <button type="button" aria-label={`${mayChange ? "Edit" : "Dry run of"} the rule of ${each.experiment}`} onClick={() => setEdited(each)}>{mayChange ? "Edit" : "Dry run"}</button>
                {mayChange && (
                  <DangerButton
                    label="Delete"
                    name={`Delete the rule of ${each.experiment}`}
                    title={`Delete the rule of ${each.experiment}?`}
                    text="All its runs are kept from now on."
                    action="Delete the rule"
                    done={`The rule of ${each.experiment} is deleted.`}
                    work={() => call("POST /api/v1/workspaces/{workspace}/operations/retention.delete", { workspace, experiment: each.experiment })}
                    onDone={found.reload}
                  />
                )}
              </td>
            </tr>
          ))}
        </Listing>
      )}
      {edited && (
        <RuleDialog
          {...{ workspace, mayChange }}
          rule={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onDone={() => {
            setEdited(undefined);
            found.reload();
          }}
        />
      )}
    </section>
  );
}

interface DialogProps {
  workspace: string;
  mayChange: boolean;
  rule: RetentionRule | undefined;
  onClose: () => void;
  onDone: () => void;
}

function RuleDialog({ workspace, mayChange, rule, onClose, onDone }: DialogProps): JSX.Element {
  const [experiment, setExperiment] = useState(rule?.experiment ?? "");
  const [text, setText] = useState(rule?.rule ?? "");
  const [plan, setPlan] = useState<RetentionPlan>();
  const given = { workspace, experiment: experiment.trim(), rule: text.trim() };
  async function tryOut(): Promise<void> {
    try {
      setPlan((await call("POST /api/v1/workspaces/{workspace}/operations/retention.plan", given)).result);
    } catch (error) {
      setPlan(undefined);
      notifyError(error);
    }
  }
  return (
    <Dialog title={rule ? `Rule of ${rule.experiment}` : "Add a rule"} onClose={onClose}>
      <form
        class="stack-small"
        onSubmit={async (event) => {
          event.preventDefault();
          if (await attempt(() => call("POST /api/v1/workspaces/{workspace}/operations/retention.set", given), `The rule of ${given.experiment} is set.`)) onDone();
        }}
      >
        {!rule && <label class="field"><span>Experiment</span><input required value={experiment} onInput={(event) => setExperiment(event.currentTarget.value)} /></label>}
        <label class="field">
          <span>Keep</span>
          <input required readOnly={!mayChange} placeholder="best 5 by accuracy, newest 20, tagged" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {plan && <Verdicts {...{ workspace, plan }} />}
        <div class="buttons">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="button" disabled={!given.experiment || !given.rule} onClick={() => void tryOut()}>Dry run</button>
          {mayChange && <button type="submit" class="primary">Set the rule</button>}
        </div>
      </form>
    </Dialog>
  );
}

function Verdicts({ workspace, plan }: { workspace: string; plan: RetentionPlan }): JSX.Element {
  const removedFirst = [...plan.verdicts].sort((one, other) => Number(one.is_kept) - Number(other.is_kept));
  return (
    <div class="stack-small" role="status">
      <p>{describePlan(plan)}</p>
      {removedFirst.length > 0 && (
        <Listing label="What the rule would do" columns={["Run", "Verdict", "Why"]}>
          {removedFirst.slice(0, MOST_SHOWN).map((each) => (
            <tr key={each.run_id}>
              <td class="name"><Link href={formatAddress(workspace, "runs", [each.run_id])}>{each.run_id}</Link></td>
              <td>{each.is_kept ? "kept" : <span class="bad">deleted</span>}</td>
              <td>{each.reason}</td>
            </tr>
          ))}
        </Listing>
      )}
      {removedFirst.length > MOST_SHOWN && <p class="muted small">The first {MOST_SHOWN} of {removedFirst.length} runs are shown.</p>}
    </div>
  );
}
