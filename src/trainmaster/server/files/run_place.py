"""The files of a run in its folder, as clients may see and add them.

Jobs own this folder and may put anything in it, also a link in the place of any folder. So every path is looked up
from the workspace's folder on, and links lead nowhere but into the run's own files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.job.script.files import LINKED_FOLDERS, PARTIAL_PREFIX
from trainmaster.server.files.listing import FileEntry, FolderEntry, find_entry, list_entries
from trainmaster.server.files.local_disk import is_on_local_disk
from trainmaster.server.files.opening import (
    NotBeneathError,
    OpenFile,
    create_file,
    enter_folder,
    is_inside,
    open_beneath,
    remove_entry,
    split_new_name,
)
from trainmaster.shared.folders import RunFolder, WorkspaceFolder, check_run_id
from trainmaster.shared.run_files import list_left_files

_FORGOTTEN_SECONDS = 24 * 3600.0
_REAL_SECONDS = 5.0
_BLOCK = 1 << 20
# A file system without hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
_EXISTING = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NameTakenError(Exception):
    """The run has a file of this name with other contents."""


class AppendGapError(Exception):
    """The bytes to append start behind the end of the file."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class AppendConflictError(Exception):
    """The file has other bytes where the bytes to append were to be."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


@dataclass(frozen=True)
class RunPlace:
    """The folder of one run. `workspace` is the real path of the workspace's folder."""

    workspace: str
    run_id: str
    is_new: bool = False
    """Whether the run has no folder yet: it gets one with its first file."""

    @classmethod
    def locate(cls, folder: WorkspaceFolder, run_id: str) -> RunPlace:
        """The folder of the run, which may not exist yet. Raises UserErrorException for an id that cannot be one."""
        check_run_id(run_id)
        return cls(_find_real_path(folder.path, int(time.monotonic() / _REAL_SECONDS)), run_id)

    @property
    def is_quick(self) -> bool:
        """Whether looking at a file takes microseconds, so that no thread is needed for it."""
        return is_on_local_disk(self.workspace)

    def exists(self) -> bool:
        """Whether there is a folder: a run gets it when it starts. Raises NotBeneathError for a link."""
        if not os.path.lexists(self.path):
            return False
        with self._enter():
            return True

    @cached_property
    def path(self) -> str:
        return f"{self.workspace}/runs/{self.run_id}"

    @cached_property
    def folder(self) -> RunFolder:
        return _make_run_folder(self.workspace, self.run_id)

    def _enter(self, *parts: str) -> contextlib.AbstractContextManager[int]:
        """A folder of the run, opened from the workspace's folder on."""
        return enter_folder(self.workspace, ("runs", self.run_id, *parts))

    def _enter_to_add(self, *parts: str) -> contextlib.AbstractContextManager[int]:
        """The same, created if it is missing. The folder of a run that was deleted meanwhile is not."""
        if self.is_new:
            return enter_folder(self.workspace, ("runs",), (self.run_id, *parts))
        return enter_folder(self.workspace, ("runs", self.run_id), parts)

    @property
    def _roots(self) -> tuple[str, str]:
        """The folders with the files of a run. The rest (specification, keys of its data) is not shown."""
        return f"{self.path}/files", f"{self.path}/code"

    # Reading

    def open(self, name: str) -> OpenFile:
        """Open a file: among the run's files or, as `code/...`, in the working folder. Raises NotBeneathError."""
        try:
            return open_beneath(f"{self.path}/files", name, self._roots)
        except NotBeneathError:
            if not name.startswith("code/"):
                raise
        return open_beneath(self.path, name, self._roots)

    def is_log(self, file: OpenFile) -> bool:
        """Whether secrets have to be hidden in this file, by whatever name it was opened."""
        return is_inside(file.path, f"{self.path}/files/azureml-logs")

    def list_files(self) -> list[FileEntry]:
        """All files, by name. Links that lead out of the run's folders are left out."""
        found = self._walk(("files",), "")
        for name in LINKED_FOLDERS:
            if self._is_linked(name):
                found += self._walk(("code", name), f"{name}/")
        return sorted(found, key=lambda entry: entry.name)

    def list_folder(self, parts: Sequence[str]) -> list[FolderEntry]:
        """The files and folders in one folder of the run, by name. Raises NotBeneathError if there is no such one."""
        is_linked = bool(parts) and parts[0] in LINKED_FOLDERS and self._is_linked(parts[0])
        with self._enter("code" if is_linked else "files", *parts) as folder:
            found = list_entries(folder, "/".join(parts), self.open)
        if not parts:
            found += [FolderEntry(name, None) for name in LINKED_FOLDERS if self._is_linked(name)]
        return sorted((each for each in found if not each.name.startswith(PARTIAL_PREFIX)), key=lambda each: each.name)

    def list_left_files(self) -> list[FileEntry]:
        """The files that the script left in its working folder, by name: `code/...`."""
        with contextlib.suppress(NotBeneathError), self._enter("code") as code:
            names = [name.removeprefix("code/") for name in list_left_files(self.folder)]
            return [entry for name in names for entry in find_entry(code, name, f"code/{name}", self.open)]
        return []

    def _walk(self, parts: tuple[str, ...], prefix: str) -> list[FileEntry]:
        found: list[FileEntry] = []
        with contextlib.suppress(NotBeneathError), self._enter(*parts) as top:
            for parent, _, files, handle in os.fwalk(".", dir_fd=top):
                inside = prefix if parent == "." else f"{prefix}{parent.removeprefix('./')}/"
                for file in files:
                    if not file.startswith(PARTIAL_PREFIX):
                        found += find_entry(handle, file, inside + file, self.open)
        return found

    def _is_linked(self, top: str) -> bool:
        """Whether `outputs` or `logs` is the link into the working folder that a running job has."""
        with contextlib.suppress(OSError, NotBeneathError), self._enter("files") as files:
            return os.readlink(top, dir_fd=files) == f"../code/{top}"
        return False

    # Removing

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file or folder, or without parts all files. It may be missing. Raises NotBeneathError for a link."""
        with self._enter("files", *parts[:-1]) as folder:
            for name in parts[-1:] or os.listdir(folder):
                remove_entry(folder, name)

    # Adding

    @contextlib.contextmanager
    def enter_parent(self, name: str) -> Iterator[tuple[int, str]]:
        """The open folder that a new file gets into, and the last part of its name. Raises NotBeneathError."""
        parts = split_new_name(name)
        if parts[-1].startswith(PARTIAL_PREFIX):
            raise NotBeneathError(name)
        is_linked = len(parts) > 1 and parts[0] in LINKED_FOLDERS and self._is_linked(parts[0])
        with self._enter_to_add("code" if is_linked else "files", *parts[:-1]) as folder:
            yield folder, parts[-1]

    def append(self, name: str, offset: int, data: bytes) -> int:
        """Add bytes to a file at `offset`; return its size. Repeating it changes nothing. It is on the disk then."""
        with self.enter_parent(name) as (folder, last):
            return append_at(folder, last, offset, data)

    def append_journal(self, writer: str, offset: int, data: bytes) -> int:
        """Like `append`, for the journal of one writer."""
        with self._enter_to_add("journals") as folder:
            return append_at(folder, f"{writer}.jsonl", offset, data)


class NewFile:
    """A file that is being received, under a name that no listing shows."""

    def __init__(self, folder: int) -> None:
        _sweep_partial(folder)
        self._folder = folder
        self._name = PARTIAL_PREFIX + os.urandom(8).hex()
        self._handle = create_file(folder, self._name)

    def write(self, piece: bytes) -> None:
        """Add the next bytes."""
        view = memoryview(piece)
        while view:
            view = view[os.write(self._handle, view) :]

    def finish(self, name: str, beside: bool) -> str:
        """Give it its name; return it. It is on the disk then. Raises NameTakenError.

        With `beside`, the next free name is used if the name exists.
        """
        durable.flush_open(self._handle)
        stem, ending = os.path.splitext(name)
        for number in range(100_000 if beside else 1):
            candidate = name if number == 0 else f"{stem}_{number}{ending}"
            if self._link(candidate):
                durable.flush_open(self._folder)
                return candidate
        raise NameTakenError(name)

    def replace(self, name: str) -> None:
        """Give it its name, which another file may have had. It is on the disk then."""
        durable.flush_open(self._handle)
        os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        durable.flush_open(self._folder)

    def _link(self, name: str) -> bool:
        """Whether the name has these contents now."""
        try:
            os.link(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileExistsError:
            return self._equals(name)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if name in os.listdir(self._folder):
                return self._equals(name)
            os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        return True

    def _equals(self, name: str) -> bool:
        try:
            other = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError:
            return False
        try:
            status = os.fstat(other)
            if not stat.S_ISREG(status.st_mode) or status.st_size != os.fstat(self._handle).st_size:
                return False
            return all(
                os.pread(other, _BLOCK, at) == os.pread(self._handle, _BLOCK, at)
                for at in range(0, status.st_size, _BLOCK)
            )
        finally:
            os.close(other)

    def close(self) -> None:
        """Remove what was not finished."""
        os.close(self._handle)
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)


def _sweep_partial(folder: int) -> None:
    """Remove what killed servers left half-written."""
    limit = time.time() - _FORGOTTEN_SECONDS
    for name in os.listdir(folder):
        if name.startswith(PARTIAL_PREFIX):
            with contextlib.suppress(OSError):
                if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < limit:
                    os.unlink(name, dir_fd=folder)


def append_at(folder: int, name: str, offset: int, data: bytes) -> int:
    """Write `data` at `offset` of the file `name`, which only grows; return its size.

    Bytes that are there already have to be the same. So a client that does not know what has arrived repeats all of
    it, also after a part of it was written when the server was killed.
    """
    handle = os.open(name, _EXISTING, 0o600, dir_fd=folder)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise NotBeneathError(name)
        size = status.st_size
        if offset > size:
            raise AppendGapError(size)
        known = min(size - offset, len(data))
        if _read_all(handle, offset, known) != data[:known]:
            raise AppendConflictError(size)
        if known < len(data):
            _write_rest(handle, size, data[known:])
            durable.flush_open(handle)
            if size == 0:
                durable.flush_open(folder)
        return max(size, offset + len(data))
    finally:
        os.close(handle)


def _read_all(handle: int, start: int, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0:
        piece = os.pread(handle, size, start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
        size -= len(piece)
    return b"".join(pieces)


def _write_rest(handle: int, size: int, data: bytes) -> None:
    view = memoryview(data)
    place = size
    try:
        while view:
            written = os.pwrite(handle, view, place)
            place += written
            view = view[written:]
    except OSError:
        # The disk is full. Nothing was acknowledged, so nothing stays.
        os.ftruncate(handle, size)
        raise


@lru_cache(maxsize=1024)
def _find_real_path(folder: Path, _period: int) -> str:
    """The path without links, looked up again in the next period: an administrator may have moved the folder."""
    return os.path.realpath(folder)


@lru_cache(maxsize=1024)
def _make_run_folder(workspace: str, run_id: str) -> RunFolder:
    return WorkspaceFolder(Path(workspace)).run(run_id)
