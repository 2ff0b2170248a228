"""The files of a datastore that is a folder of the server's machine.

A contributor may register any address as a datastore, also one that only the server's account can read. So the server
opens only the datastores that every workspace has, and folders that its administrator has allowed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.server.files.listing import FileEntry, FolderEntry, describe_file, find_entry, list_entries
from trainmaster.server.files.opening import (
    NotBeneathError,
    OpenFile,
    create_file,
    enter_folder,
    is_inside,
    open_beneath,
    remove_entry,
    split_name,
    split_new_name,
)
from trainmaster.shared.folders import WorkspaceFolder

_PART_PREFIX, _PART_SUFFIX = ".trainmaster-", ".part"


class ForbiddenFolderError(Exception):
    """The server does not open this folder for clients."""


@dataclass(frozen=True)
class DatastorePlace:
    """The folder `parts` below `top`, which is a real path that jobs cannot change."""

    top: str
    parts: tuple[str, ...]

    @classmethod
    def find(cls, folder: Path, workspace: WorkspaceFolder, allowed: Sequence[str]) -> DatastorePlace:
        """The place of a datastore with the address `folder`. Raises ForbiddenFolderError."""
        home = str(workspace.path)
        wanted = os.path.normpath(folder)
        for own in (str(workspace.datastore), str(workspace.file_datastore)):
            if wanted == own or is_inside(wanted, own):
                return cls(os.path.realpath(home), Path(wanted).relative_to(home).parts)
        for root in allowed:
            if wanted == os.path.normpath(root) or is_inside(wanted, os.path.normpath(root)):
                return cls(os.path.realpath(root), Path(wanted).relative_to(os.path.normpath(root)).parts)
        raise ForbiddenFolderError(wanted)

    @property
    def path(self) -> str:
        """The folder itself."""
        return os.path.join(self.top, *self.parts)

    def open(self, name: str) -> OpenFile:
        """Open a file. Raises NotBeneathError."""
        return open_beneath(self.path, name, [self.path])

    def list_files(self, prefix: str) -> list[FileEntry]:
        """The files at and below `prefix`, by name. Links out of the datastore are left out."""
        parts = split_name(prefix) if prefix else []
        found: list[FileEntry] = []
        with contextlib.suppress(NotBeneathError):
            return [describe_file(prefix, self.open(prefix))]
        with contextlib.suppress(NotBeneathError), enter_folder(self.top, (*self.parts, *parts)) as folder:
            for parent, _, names, handle in os.fwalk(".", dir_fd=folder):
                inside = "/".join((*parts, *(part for part in parent.split("/") if part != ".")))
                for name in names:
                    if not _is_partial(name):
                        found += find_entry(handle, name, f"{inside}/{name}" if inside else name, self.open)
        return sorted(found, key=lambda entry: entry.name)

    def list_folder(self, parts: Sequence[str]) -> list[FolderEntry]:
        """The files and folders in one folder, by name. Raises NotBeneathError if there is no such one."""
        with enter_folder(self.top, (*self.parts, *parts)) as folder:
            found = list_entries(folder, "/".join(parts), self.open)
        return sorted((each for each in found if not _is_partial(each.name)), key=lambda each: each.name)

    def remove(self, parts: Sequence[str]) -> None:
        """Remove a file or folder, which may be missing. Raises NotBeneathError for a link on the way."""
        with enter_folder(self.top, (*self.parts, *parts[:-1])) as folder:
            remove_entry(folder, parts[-1])

    @contextlib.contextmanager
    def enter_parent(self, name: str) -> Iterator[tuple[int, str]]:
        """The open folder that a new file gets into, and the last part of its name. Raises NotBeneathError."""
        parts = split_new_name(name)
        with enter_folder(self.top, (), (*self.parts, *parts[:-1])) as folder:
            yield folder, parts[-1]


def _is_partial(name: str) -> bool:
    return name.startswith(_PART_PREFIX) and name.endswith(_PART_SUFFIX)


class NewDatastoreFile:
    """A file that is being received. It replaces the one of its name when it is complete."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._name = _PART_PREFIX + os.urandom(8).hex() + _PART_SUFFIX
        self._handle = create_file(folder, self._name)

    def write(self, piece: bytes) -> None:
        """Add the next bytes."""
        view = memoryview(piece)
        while view:
            view = view[os.write(self._handle, view) :]

    def finish(self, name: str) -> None:
        """Give it its name. It is on the disk then."""
        durable.flush_open(self._handle)
        os.rename(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        durable.flush_open(self._folder)

    def close(self) -> None:
        """Remove what was not finished."""
        os.close(self._handle)
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)
