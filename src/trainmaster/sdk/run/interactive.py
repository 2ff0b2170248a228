"""Runs without a job: a notebook or program logs to them."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.identity import user_name
from trainmaster.job.script.labels import check_tags
from trainmaster.sdk.run.run import Run
from trainmaster.shared.notices import warn
from trainmaster.shared.records import RunRecord, Status
from trainmaster.shared.serialization import from_plain, to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.experiment import Experiment

_TYPE = "azureml.interactive"


class InteractiveRun(Run):
    """A run that this program logs to. In a `with` block, printed text is kept, and the run ends with the block."""

    _tee: _Tee | None = None
    _logs: Path | None = None
    """The folder ./logs at the start of the run."""
    _logs_before: Mapping[Path, tuple[int, int, int]] = MappingProxyType({})
    """The files in it at the start of the `with` block."""
    _outputs_before: Mapping[Path, tuple[int, int, int]] = MappingProxyType({})
    """The files in the folder of outputs at the start of the run."""

    def __enter__(self) -> InteractiveRun:
        self._logs_before = _files_in(self._logs) if self._logs else {}
        self._tee = _Tee(sys.stdout, self._files.open_text("logs/user_log.txt"))
        sys.stdout = self._tee
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if self._tee is not None:
            if sys.stdout is self._tee:
                sys.stdout = self._tee.screen
            self._tee.file.close()
            self._tee = None
        self._keep_logs()
        return super().__exit__(kind, error, trace)

    def _keep_logs(self) -> None:
        """Keeps the files that were written to ./logs within the block, as v1 did."""
        if self._logs is None:
            return
        written = [path for path, state in _files_in(self._logs).items() if self._logs_before.get(path) != state]
        self._keep_files(written, self._logs, "logs")

    def _is_replaced(self, path: Path) -> bool:
        if self._outputs is None or path not in self._outputs_before:
            return False
        uploaded = f"outputs/{path.relative_to(self._outputs).as_posix()}"
        return self._files.has(uploaded) and _state(path) == self._outputs_before[path]


def start_logging(
    experiment: Experiment,
    outputs: str | os.PathLike[str] | bool | None = None,
    snapshot_directory: str | os.PathLike[str] | None = ".",
    display_name: str | None = None,
    tags: dict[str, Any] | None = None,
    **unknown: Any,
) -> InteractiveRun:
    """Creates the folders ./outputs and ./logs and a run, which is Running; returns the run."""
    if unknown:
        raise UserErrorException(
            f"start_logging has no parameter {', '.join(unknown)}",
            hint="It takes outputs, snapshot_directory, display_name and tags.",
        )
    snapshot_id, properties = _snapshot(experiment, snapshot_directory)
    own_outputs, logs = _make_folder("outputs"), _make_folder("logs")
    now = time.time()
    record = RunRecord(
        id=str(uuid.uuid4()),
        experiment=experiment.name,
        status=Status.RUNNING,
        created_at=now,
        started_at=now,
        type=_TYPE,
        target="sdk",
        display_name=display_name or "",
        snapshot_id=snapshot_id,
        submitted_by=user_name(),
        tags=check_tags(tags or {}),
        properties={**properties, **experiment.workspace.backend.owner()},
    )
    answer = experiment.workspace.connection.call("runs.create", runs=[to_plain(record)])
    run = InteractiveRun(experiment, outputs=outputs, _record=from_plain(RunRecord, answer[0]))
    if outputs is None or outputs is True:
        run._outputs = own_outputs
    run._logs = logs
    run._outputs_before = _files_in(run._outputs) if run._outputs else {}
    return run


def _make_folder(name: str) -> Path | None:
    """Creates the folder in the current folder, as v1 did: scripts write to it without creating it."""
    try:
        folder = Path.cwd() / name
        folder.mkdir(exist_ok=True)
    except OSError as error:
        warn(f"start_logging() cannot create the folder ./{name}: {error.strerror}. The run continues without it.")
        return None
    return folder


def _snapshot(experiment: Experiment, folder: str | os.PathLike[str] | None) -> tuple[str, dict[str, str]]:
    if folder is None:
        return "", {}
    from trainmaster.snapshots import git_properties

    snapshot = experiment.workspace.backend.contents.take_snapshot(Path(folder))
    return snapshot.id, {"ContentSnapshotId": snapshot.id, **git_properties(Path(folder))}


def _files_in(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """The files of a folder, each with values that change when it is written."""
    return {path: _state(path) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


class _Tee:
    """Standard output that is also kept in a file."""

    def __init__(self, screen: Any, file: IO[str]) -> None:
        self.screen = screen
        self.file = file

    def write(self, text: str) -> int:
        if not self.file.closed:
            self.file.write(text)
        written: int = self.screen.write(text)
        return written

    def flush(self) -> None:
        if not self.file.closed:
            self.file.flush()
        self.screen.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.screen, name)
