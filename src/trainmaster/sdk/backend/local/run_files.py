"""The files of a run in its folder."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException
from trainmaster.job.helper.safe_names import inner_parts
from trainmaster.job.script.files import RunFiles as OwnFiles
from trainmaster.job.script.journal import Journal
from trainmaster.sdk.backend.backend import LogFile, LogPart
from trainmaster.sdk.backend.local.masks import mask_of
from trainmaster.shared import run_files
from trainmaster.shared.attempts import FailedAttempt, read_failed_attempts
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.private import open_private

_LOGS = "azureml-logs/"
_BLOCK = 1 << 20


class LocalRunFiles:
    """The files of the run in `folder`."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._own = OwnFiles(folder.files)

    @property
    def run_id(self) -> str:
        """The run they belong to."""
        return self._folder.path.name

    # Listing

    def names(self) -> list[str]:
        """The names of all files, sorted."""
        return run_files.names(self._folder)

    def list_left_names(self) -> list[str]:
        """Files that the script left outside of outputs/ and logs/, sorted."""
        return run_files.list_left_files(self._folder)

    def has(self, name: str) -> bool:
        """Whether there is a file `name`."""
        return run_files.is_file(run_files.path_of(self._folder, name))

    def sizes(self, names: Sequence[str]) -> list[tuple[str, int]]:
        """Name and size of each of these files that still exists."""
        found = []
        for name in names:
            # Scripts delete files while they are listed.
            with suppress(FileNotFoundError):
                found.append((name, run_files.path_of(self._folder, name).stat().st_size))
        return found

    # Reading

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """The contents of a file, or a part of it."""
        with open(run_files.find(self._folder, name), "rb") as file:
            file.seek(start)
            data = file.read(-1 if size is None else size)
            # Asked after reading: the dispatcher knows each secret before the script can print it.
            mask = mask_of(self._folder) if name.startswith(_LOGS) else None
            if not mask:
                return data
            if start == 0 and size is None:
                return mask.hide(data)
            before = os.pread(file.fileno(), min(start, mask.reach), max(0, start - mask.reach))
            return mask.hide_next(before, data)

    def copy(self, name: str, target: Path) -> None:
        """Copies one file to the path `target`, whose folder is created."""
        source = run_files.find(self._folder, name)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            if name.startswith(_LOGS):
                mask_of(self._folder).hide_in_file(target)
        except (OSError, shutil.SameFileError) as error:
            raise UserErrorException(f"{source.name} cannot be copied to {target}", cause=str(error)) from None

    def logs(self) -> list[LogFile]:
        """All logs by name; of logs with the same name, those of earlier attempts come first."""
        while True:
            names = self._log_names()
            found = [log for log in map(self._log, names) if log is not None]
            # Listed again if they moved meanwhile. Otherwise the next attempt could be shown before the end of this.
            if names == self._log_names():
                return sorted(found, key=lambda log: log.place)

    def _log_names(self) -> list[str]:
        try:
            entries = sorted(os.listdir(self._folder.logs))
        except FileNotFoundError:
            return []
        attempts = [entry for entry in entries if entry.startswith("attempt_")]
        return [*entries, *(f"{attempt}/{name}" for attempt in attempts for name in self._attempt_names(attempt))]

    def _attempt_names(self, attempt: str) -> list[str]:
        try:
            return sorted(os.listdir(self._folder.logs / attempt))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _log(self, name: str) -> LogFile | None:
        try:
            found = os.stat(self._folder.logs / name)
        except FileNotFoundError:
            # Just moved away.
            return None
        return LogFile(name, str(found.st_ino), found.st_size) if stat.S_ISREG(found.st_mode) else None

    def read_log(self, name: str, identity: str, start: int) -> LogPart:
        """Reads a log from an offset on, at most 1 MiB. Nothing if `name` is not this log any more."""
        try:
            with open(self._folder.logs.joinpath(*inner_parts(name)), "rb", buffering=0) as file:
                if str(os.fstat(file.fileno()).st_ino) != identity:
                    return LogPart(b"", start)
                block = os.pread(file.fileno(), _BLOCK, start)
                # Fetched after reading: the script had received every secret that it may have printed in this block.
                mask = mask_of(self._folder)
                reach = min(start, mask.reach) if mask else 0
                before = os.pread(file.fileno(), reach, start - reach) if reach else b""
        except (FileNotFoundError, ValueError):
            return LogPart(b"", start)
        return LogPart(mask.hide_next(before, block), start + len(block))

    def mirror(self, name: str, target: Path) -> Link:
        """A link to the folder, which shows the files as they are."""
        # Not resolved: this path stays valid when the logs of an ended run move out of its working folder.
        return Link(self._folder.files / name, target)

    # Adding

    def add(self, name: str, source: Any) -> str:
        """Keeps a file or the contents of a stream as `name`; returns its plain form."""
        return self._own.add(name, source)

    def add_beside(self, name: str, source: Any) -> str:
        """Like `add`, but uses the next free name if the name exists."""
        return self._own.add_beside(name, source)

    def flush(self, names: Iterable[str]) -> None:
        """Returns when these files are on the disk."""
        self._own.flush(names)

    def flush_all(self) -> None:
        """Returns when all files are on the disk."""
        durable.flush_below(self._folder.files, self._folder.path)

    def open_text(self, name: str) -> IO[str]:
        """A text file of the run, to which is appended."""
        path = self._folder.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a", encoding="utf-8", errors="backslashreplace", opener=open_private)

    def open_journal(self, writer: str) -> Journal:
        """The journal of one writer."""
        return Journal(self._folder.journals / f"{writer}.jsonl")

    # What is known about the run by its files

    def read_failed_attempts(self) -> list[FailedAttempt]:
        """The attempts before the current one, oldest first."""
        return read_failed_attempts(self._folder)

    def read_environment_lock(self) -> str | None:
        """The packages of the run's environment; None if it was not built."""
        lock = self._folder.environment_lock
        return lock.read_text(encoding="utf-8") if lock.is_file() else None

    def address(self, name: str = "") -> str:
        """The address of a file; without a name that of the run's folder."""
        return (self._folder.files / name if name else self._folder.path).as_uri()

    @property
    def location(self) -> str:
        """The path of the run's folder."""
        return str(self._folder.path)


class Link:
    """A link to a folder with files of a run."""

    is_live = True

    def __init__(self, source: Path, target: Path) -> None:
        self._target = target
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() and Path(os.readlink(target)) == source:
            target.unlink()
        target.symlink_to(source)

    def update(self) -> None:
        """Nothing: a link always shows what is there."""

    def close(self) -> None:
        """Removes the link."""
        self._target.unlink(missing_ok=True)
