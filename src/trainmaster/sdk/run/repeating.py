"""Running a run again, as it was or with one thing changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.identity import user_name
from trainmaster.shared.job_spec import JobSpec, load_spec
from trainmaster.shared.records import RunRecord
from trainmaster.shared.run_ids import make_run_id
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace


@dataclass(frozen=True)
class Repetition:
    """What is different this time; None is as before."""

    arguments: Sequence[str] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, Any] | None = None
    source_directory: str = ""
    """The folder to take a new snapshot of; empty for the same code."""
    fresh_environment: bool = False
    """Whether the packages are resolved anew."""
    resume: bool = False


def send_again(workspace: Workspace, origin: RunRecord, wanted: Repetition) -> RunRecord:
    """Queues the run; returns the new one."""
    from trainmaster.environments.sources import source_variables

    spec = load_spec(origin.spec) if origin.spec else None
    # Arguments after a command replace all of it.
    words = "command" if spec is not None and spec.command else "arguments"
    given = {} if wanted.arguments is None else {words: [str(word) for word in wanted.arguments]}
    answer = workspace.connection.call(
        "runs.rerun",
        run_id=origin.id,
        new_id=make_run_id(origin.experiment),
        submitted_by=user_name(),
        tags=None if wanted.tags is None else {**origin.tags, **wanted.tags},
        settings={str(name): _as_text(value) for name, value in wanted.settings.items()},
        fresh_environment=wanted.fresh_environment,
        source=_take_source(workspace, spec, wanted.source_directory) if wanted.source_directory else None,
        resume=wanted.resume,
        sources=source_variables(os.environ),
        **given,
    )
    return from_plain(RunRecord, answer)


def find_source(origin: RunRecord, given: str | os.PathLike[str] | None = None) -> str:
    """The folder that a run was submitted from, or another one that was given. It must be on this machine."""
    if not origin.spec:
        return ""
    spec = load_spec(origin.spec)
    folder = Path(given or spec.source_directory).expanduser().resolve()
    if not folder.is_dir():
        raise UserErrorException(
            f"the source folder of run {origin.id} is not here: {folder}",
            cause="It was moved or deleted, or the run was submitted from another machine.",
            hint="Name the folder with source_directory=, or leave out fresh_code to use the code as it was.",
        )
    if spec.script and spec.entry != "module" and not (folder / spec.script).is_file():
        raise UserErrorException(f"there is no script {spec.script} in {folder}")
    return str(folder)


def _take_source(workspace: Workspace, spec: JobSpec | None, folder: str) -> dict[str, Any]:
    from trainmaster.snapshots import start_git_properties

    git = start_git_properties(Path(folder))
    snapshot = workspace.backend.contents.take_snapshot(Path(folder))
    return {"snapshot_id": snapshot.id, "directory": folder, "properties": dict(git.result())}


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refresh_environment(workspace: Workspace, origin: RunRecord, show: Any) -> None:
    """Resolves and builds the environment of a run again; `show` is called with the parts of the log."""
    from trainmaster.environments.sources import source_variables
    from trainmaster.sdk.long_work import follow_work
    from trainmaster.shared.serialization import to_plain

    environment = load_spec(origin.spec).environment if origin.spec else None
    if environment is None or environment.user_managed or environment.is_of_image:
        raise UserErrorException(
            f"the environment of run {origin.id} cannot be resolved anew",
            cause="Its packages are not installed by Trainmaster.",
        )
    from dataclasses import replace

    follow_work(
        workspace,
        "environments.follow_build",
        show,
        spec=to_plain(replace(environment, lock="")),
        sources=source_variables(os.environ),
        refresh=True,
    )
