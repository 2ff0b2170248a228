"""Makes the records of a trial that is planned to start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.dispatcher.sweeps.trials import headline
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import RunRecord, Status, TrialRecord
from trainmaster.tuning.arguments import parameter_words, trial_job
from trainmaster.tuning.planning import Start
from trainmaster.tuning.spec import SweepSpec

RESUME_ARGUMENT = "--resume-from"
RESUME_VARIABLE = "MODEL_LOCATION"


@dataclass(frozen=True)
class NewTrial:
    """A trial, its run, and the job of that run."""

    trial: TrialRecord
    run: RunRecord
    job: JobSpec


def new_trial(
    sweep: RunRecord,
    spec: SweepSpec,
    plain_job: Mapping[str, Any],
    start: Start,
    workspace: WorkspaceFolder,
    now: float,
) -> NewTrial:
    """The trial for a planned start; `plain_job` is the sweep's job as plain data."""
    job = _job(spec, start, workspace)
    run_id = f"{sweep.id}_{start.number}"
    trial = TrialRecord(start.number, run_id, start.parameters, start.continues, created_at=now)
    run = RunRecord(
        id=run_id,
        experiment=sweep.experiment,
        status=Status.NOT_STARTED,
        created_at=now,
        parent_id=sweep.id,
        target=sweep.target,
        spec=_dump(plain_job, job),
        snapshot_id=sweep.snapshot_id,
        submitted_by=sweep.submitted_by,
        tags={"hyperparameters": json.dumps(dict(start.parameters))},
        properties=dict(sweep.properties),
    )
    return NewTrial(trial, run, job)


def _dump(plain: Mapping[str, Any], job: JobSpec) -> str:
    """Like `dump_spec`, but converts only the fields that differ between trials."""
    own = {
        "arguments": list(job.arguments),
        "command": list(job.command),
        "environment_variables": dict(job.environment_variables),
    }
    # Without indentation, because Python writes indented JSON much more slowly.
    return json.dumps({**plain, **own}, sort_keys=True)


def _job(spec: SweepSpec, start: Start, workspace: WorkspaceFolder) -> JobSpec:
    job = trial_job(spec, start.parameters)
    if not start.continues:
        return job
    outputs = str(workspace.run(start.continues).files / "outputs")
    variables = {**job.environment_variables, RESUME_VARIABLE: outputs}
    if job.command:
        return replace(job, environment_variables=variables)
    return replace(job, environment_variables=variables, arguments=(*job.arguments, RESUME_ARGUMENT, outputs))


def start_line(trial: TrialRecord) -> str:
    """The line about a start in the log.

    >>> start_line(TrialRecord(3, "s_3", {"--lr": 0.1, "depth": 2}))
    'run_3 starts: --lr 0.1 --depth 2'
    """
    from_where = f" (goes on with {trial.continues})" if trial.continues else ""
    return f"run_{trial.number} starts: {' '.join(parameter_words(trial.parameters))}{from_where}"


def end_line(trial: TrialRecord, best: float | None, metric: str) -> str:
    """The line about an end in the log.

    >>> end_line(TrialRecord(3, "s_3", {}, status=Status.COMPLETED), 0.5, "loss")
    'run_3 is Completed, best loss 0.5'
    """
    line = f"run_{trial.number} is {trial.status}"
    line += f", best {metric} {best:.6g}" if best is not None else ""
    return f"{line}: {headline(trial.error)}" if trial.error else line
