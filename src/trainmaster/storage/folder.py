"""A store that is a folder of this machine."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.job.errors import DatastoreException
from trainmaster.storage.paths import join, shown
from trainmaster.storage.storage import StoredFile

# Files on their way have names of this kind; a killed copy may leave one behind, and no listing gives it out.
_PART_PREFIX, _PART_SUFFIX = ".trainmaster-", ".part"


class FolderStorage:
    """The files below one folder. Links in it are followed: the folder belongs to whoever put them there."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def list(self, prefix: str) -> list[StoredFile]:
        """The files at and below `prefix`."""
        start = self._root / prefix
        with _explained("read", start):
            if start.is_file():
                return [StoredFile(prefix, start.stat().st_size)]
            return sorted(_below(start, prefix, frozenset())) if start.is_dir() else []

    def exists(self, path: str) -> bool:
        """Whether a file lies at `path`."""
        return (self._root / path).is_file()

    def get(self, path: str, local: Path) -> None:
        """Copy the file at `path` to `local`."""
        copy_whole(self._root / path, local)

    def put(self, local: Path, path: str) -> None:
        """Copy the file `local` to `path`: after a power cut it is there whole, or as it was."""
        target = self._root / path
        with _explained("written", target), part_of(target) as part:
            _copy(local, part)
            durable.flush_one(part)

    def local_path(self) -> Path | None:
        """The folder itself."""
        return self._root


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file so that `target` is at no moment a part of it, and make its folders."""
    with _explained("written", target), part_of(target) as part:
        _copy(source, part)


def _copy(source: Path, part: Path) -> None:
    with _explained("read", source):
        opened = source.open("rb")
    with opened, part.open("xb") as written:
        shutil.copyfileobj(opened, written, 1 << 20)


@contextmanager
def part_of(target: Path) -> Iterator[Path]:
    """A name next to `target` to write to; takes `target`'s place at the end, goes away on an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.parent / f"{_PART_PREFIX}{secrets.token_hex(8)}{_PART_SUFFIX}"
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _below(folder: Path, path: str, above: frozenset[str]) -> Iterator[StoredFile]:
    real = os.path.realpath(folder)
    if real in above:
        return  # A link that leads back up would never end.
    with os.scandir(folder) as entries:
        for entry in entries:
            inner = join(path, entry.name)
            if entry.is_dir():
                yield from _below(Path(entry.path), inner, above | {real})
            elif entry.is_file() and not _is_part(entry.name):
                yield StoredFile(inner, entry.stat().st_size)


def _is_part(name: str) -> bool:
    return name.startswith(_PART_PREFIX) and name.endswith(_PART_SUFFIX)


@contextmanager
def _explained(done: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DatastoreException(
            f"{shown(path)} cannot be {done}", inner_exception=error, cause=error.strerror or str(error)
        ) from error
