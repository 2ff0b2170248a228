"""The record of a run that does again what an earlier one did. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_changes import change_job
from trainmaster.shared.job_spec import JobSpec, dump_spec, load_spec
from trainmaster.shared.records import TERMINAL, RunRecord, Status

ORIGIN = "origin"
"""The property that has the id of the run that was run again."""
RESUMED = "resumed_from"
"""The property of a run that continues in the working folder of another one, which it names."""

_KEPT_PROPERTIES = ("ContentSnapshotId", "azureml.git.", "mlflow.source.git.")


@dataclass(frozen=True)
class Edits:
    """What is different this time; None is as before."""

    arguments: Sequence[str] | None = None
    command: Sequence[str] | None = None
    display_name: str | None = None
    tags: Mapping[str, Any] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Arguments and settings by name (`shared/job_changes.py`), and `name` and `tag.NAME`."""
    lock: str = ""
    """The packages to install; empty: they are resolved."""
    source: FreshSource | None = None
    resumes: bool = False
    """Whether it continues in the working folder of the first one."""


@dataclass(frozen=True)
class FreshSource:
    """The source folder as it is now."""

    snapshot_id: str
    directory: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """What git knows about it."""


def rerun_record(origin: RunRecord, new_id: str, submitted_by: str, now: float, edits: Edits) -> RunRecord:
    """The run to submit: the same snapshot, environment and settings, as a run of its own."""
    if not origin.spec:
        raise UserErrorException(
            f"run {origin.id} cannot be run again",
            cause="It was logged by a program and has no job.",
            hint="Start the program again.",
        )
    if edits.resumes and origin.status not in TERMINAL:
        raise UserErrorException(
            f"run {origin.id} has not ended: it is {origin.status}", hint="Wait for it, or cancel it first."
        )
    spec = _edit(load_spec(origin.spec, f"the specification of run {origin.id}"), edits)
    tags = dict(origin.tags if edits.tags is None else edits.tags)
    tags |= {name.removeprefix("tag."): text for name, text in edits.settings.items() if name.startswith("tag.")}
    name = edits.settings.get("name", edits.display_name)
    known = origin.properties if edits.source is None else edits.source.properties
    return RunRecord(
        id=new_id,
        experiment=origin.experiment,
        status=Status.NOT_STARTED,
        created_at=now,
        type=origin.type,
        display_name=origin.display_name if name is None else name,
        description=origin.description,
        target=spec.target,
        spec=dump_spec(spec),
        snapshot_id=spec.snapshot_id,
        submitted_by=submitted_by,
        tags=tags,
        properties={
            **{name: value for name, value in known.items() if name.startswith(_KEPT_PROPERTIES)},
            "ContentSnapshotId": spec.snapshot_id,
            ORIGIN: origin.id,
            **({RESUMED: origin.id} if edits.resumes else {}),
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
    spec = change_job(spec, {name: text for name, text in edits.settings.items() if not _is_label(name)})
    if edits.source is not None:
        spec = replace(spec, snapshot_id=edits.source.snapshot_id, source_directory=edits.source.directory)
    return replace(spec, environment=replace(spec.environment, lock=edits.lock))


def _is_label(name: str) -> bool:
    return name == "name" or name.startswith("tag.")
