"""Runs without a job: a notebook logs to them while it goes."""

from __future__ import annotations

import os
import shutil
import sys
import time
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trainmaster.errors import UserErrorException
from trainmaster.experiment import checked_tags, user
from trainmaster.owner import this_program
from trainmaster.plain import from_plain, to_plain
from trainmaster.records import RunRecord, Status
from trainmaster.run import Run
from trainmaster.runtime.files import RunFiles

if TYPE_CHECKING:
    from trainmaster.experiment import Experiment

_TYPE = "azureml.interactive"


class InteractiveRun(Run):
    """A run that this program logs to. In a `with` block it ends with the block, and what is printed is kept."""

    _tee: _Tee | None = None
    _logs: dict[Path, tuple[int, int, int]] | None = None
    """The files in ./logs when the block was entered."""

    def __enter__(self) -> InteractiveRun:
        self._logs = _files_in(Path.cwd() / "logs")
        log = self._folder.files / "logs" / "user_log.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._tee = _Tee(sys.stdout, open(log, "a", encoding="utf-8", errors="backslashreplace"))
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
        """As in v1, what was written to ./logs within the block belongs to the run."""
        folder = Path.cwd() / "logs"
        before = self._logs or {}
        for path, state in _files_in(folder).items():
            if before.get(path) != state:
                RunFiles(self._files_folder()).add(f"logs/{path.relative_to(folder).as_posix()}", str(path))

    def complete(self, _set_status: bool = True) -> None:
        self._collect()
        super().complete()

    def fail(self, error_details: Any = None, error_code: str | None = None, _set_status: bool = True) -> None:
        self._collect()
        super().fail(error_details, error_code)

    def _collect(self) -> None:
        if self._outputs and Path(self._outputs).is_dir():
            shutil.copytree(self._outputs, self._folder.files / "outputs", dirs_exist_ok=True)


def start_logging(
    experiment: Experiment,
    outputs: str | None = None,
    snapshot_directory: str | os.PathLike[str] | None = ".",
    display_name: str | None = None,
    tags: dict[str, Any] | None = None,
    **unknown: Any,
) -> InteractiveRun:
    """Makes the run and returns it, Running."""
    if unknown:
        raise UserErrorException(
            f"start_logging has no parameter {', '.join(unknown)}",
            hint="It takes outputs, snapshot_directory, display_name and tags.",
        )
    snapshot_id, properties = _snapshot(experiment, snapshot_directory)
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
        submitted_by=user(),
        tags=checked_tags(tags or {}),
        properties={**properties, **this_program()},
    )
    answer = experiment.workspace._call("runs.create", runs=[to_plain(record)])
    return InteractiveRun(experiment, outputs=outputs, _record=from_plain(RunRecord, answer[0]))


def _snapshot(experiment: Experiment, folder: str | os.PathLike[str] | None) -> tuple[str, dict[str, str]]:
    if folder is None:
        return "", {}
    from trainmaster.snapshots import git_properties, take_snapshot

    snapshot = take_snapshot(Path(folder), experiment.workspace.path)
    return snapshot.id, {"ContentSnapshotId": snapshot.id, **git_properties(Path(folder))}


def _files_in(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """The files of a folder, each with what changes when it is written."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    states = [path.stat() for path in found]
    return {path: (s.st_ino, s.st_size, s.st_mtime_ns) for path, s in zip(found, states, strict=True)}


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
