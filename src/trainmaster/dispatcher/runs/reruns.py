"""The record of a run that does again what an earlier one did. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import JobSpec, dump_spec, load_spec
from trainmaster.shared.records import RunRecord, Status

ORIGIN = "origin"
"""The property that has the id of the run that was run again."""

_KEPT_PROPERTIES = ("ContentSnapshotId", "azureml.git.", "mlflow.source.git.")


@dataclass(frozen=True)
class Edits:
    """What is different this time; None is as before."""

    arguments: Sequence[str] | None = None
    command: Sequence[str] | None = None
    display_name: str | None = None
    tags: Mapping[str, Any] | None = None


def rerun_record(origin: RunRecord, new_id: str, submitted_by: str, now: float, edits: Edits) -> RunRecord:
    """The run to submit: the same snapshot, environment and settings, as a run of its own."""
    if not origin.spec:
        raise UserErrorException(
            f"run {origin.id} cannot be run again",
            cause="It was logged by a program and has no job.",
            hint="Start the program again.",
        )
    spec = _edit(load_spec(origin.spec, f"the specification of run {origin.id}"), edits)
    return RunRecord(
        id=new_id,
        experiment=origin.experiment,
        status=Status.NOT_STARTED,
        created_at=now,
        type=origin.type,
        display_name=origin.display_name if edits.display_name is None else edits.display_name,
        description=origin.description,
        target=spec.target,
        spec=dump_spec(spec),
        snapshot_id=spec.snapshot_id,
        submitted_by=submitted_by,
        tags=origin.tags if edits.tags is None else edits.tags,
        properties={
            **{name: value for name, value in origin.properties.items() if name.startswith(_KEPT_PROPERTIES)},
            ORIGIN: origin.id,
        },
    )


def _edit(spec: JobSpec, edits: Edits) -> JobSpec:
    if edits.command is not None:
        if not spec.command:
            raise UserErrorException("this run has a script, not a command", hint="Give other arguments instead.")
        if not any(word.strip() for word in edits.command):
            raise UserErrorException("the command is empty")
        spec = replace(spec, command=tuple(edits.command))
    if edits.arguments is not None:
        if spec.command and edits.arguments:
            raise UserErrorException("this run has a command, not a script", hint="Give another command instead.")
        spec = replace(spec, arguments=tuple(edits.arguments))
    return spec
