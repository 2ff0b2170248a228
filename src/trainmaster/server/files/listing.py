"""Files as the server lists them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass

from trainmaster.server.files.opening import NotBeneathError, OpenFile


@dataclass(frozen=True)
class FileEntry:
    """A file of a run or of a datastore."""

    name: str
    size: int
    modified_at: float


@dataclass(frozen=True)
class FolderEntry:
    """A file or folder in a folder."""

    name: str
    """Without the names of the folders above it."""
    size: int | None
    """None for a folder."""


def list_entries(folder: int, name: str, open_file: Callable[[str], OpenFile]) -> list[FolderEntry]:
    """What is in an open folder, whose whole name is `name`. Links are shown as `find_entry` shows them."""
    found: list[FolderEntry] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found.append(FolderEntry(entry.name, None))
                continue
            whole = f"{name}/{entry.name}" if name else entry.name
            found += [FolderEntry(entry.name, file.size) for file in find_entry(folder, entry.name, whole, open_file)]
    return found


def find_entry(folder: int, file: str, name: str, open_file: Callable[[str], OpenFile]) -> list[FileEntry]:
    """The file `file` of an open folder, under its whole `name`; nothing if it cannot be shown.

    A link is shown as the file it leads to, if `open_file` opens that one.
    """
    try:
        status = os.stat(file, dir_fd=folder, follow_symlinks=False)
    except OSError:
        # Scripts delete files while they are listed.
        return []
    if stat.S_ISREG(status.st_mode):
        return [FileEntry(name, status.st_size, status.st_mtime)]
    if stat.S_ISLNK(status.st_mode):
        with contextlib.suppress(NotBeneathError):
            return [describe_file(name, open_file(name))]
    return []


def describe_file(name: str, file: OpenFile) -> FileEntry:
    """An open file, which is closed."""
    file.close()
    return FileEntry(name, file.size, file.modified_at)
