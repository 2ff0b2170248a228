"""Stores each content once, under its digest. A blob is complete or absent: it is written elsewhere and renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from blake3 import blake3

from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots.recheck import Signature, sign

_WHOLE = 1 << 20
"""Files up to this size are read in one piece."""
_PIECE = 1 << 22
_ATTEMPTS = 4
_FORGOTTEN_SECONDS = 3600.0
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SourceChangedError(Exception):
    """A file disappeared or changed its type between the walk and the copy: walk again."""


class Stored(NamedTuple):
    """A file as it was copied."""

    digest: str
    signature: Signature
    executable: bool


class Hashing(NamedTuple):
    """How contents are named, and when an existing blob counts as intact."""

    new: Callable[..., Any]
    """Creates a hash object with the interface of `hashlib`."""
    is_there: Callable[[str, str, int], bool]
    """Takes the folder of blobs, a digest and a size."""


def blob_path(blobs: str, digest: str) -> str:
    """The path of the content with this digest."""
    return f"{blobs}/{digest[:2]}/{digest}"


def has_blob(blobs: str, digest: str, size: int) -> bool:
    """Whether the content exists and has the right size."""
    try:
        return os.stat(blob_path(blobs, digest)).st_size == size
    except OSError:
        return False


def store_file(blobs: str, path: bytes, hashing: Hashing | None = None) -> Stored:
    """Hash the file and store its content. Both see the same bytes, even if another program writes to the file."""
    try:
        descriptor = os.open(path, _OPEN_FILE)
    except (FileNotFoundError, NotADirectoryError):
        raise SourceChangedError from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # it became a link or a socket
            raise SourceChangedError from None
        raise unreadable(path, error) from None
    try:
        return _store_open(blobs, path, descriptor, hashing or _OF_SNAPSHOTS)
    except OSError as error:
        raise SnapshotException(
            f"Cannot copy {os.fsdecode(path)} into the workspace",
            cause=str(error),
            hint="Is the disk full or read-only?",
        ) from None
    finally:
        os.close(descriptor)


def unreadable(path: bytes, error: OSError) -> SnapshotException:
    """The error for a file or folder that cannot be read."""
    name = os.fsdecode(path)
    return SnapshotException(
        f"Cannot read {name}",
        cause=error.strerror or str(error),
        hint=f"Make it readable (chmod u+r), or leave it out: add a line to .amlignore for {Path(name).name}",
    )


_OF_SNAPSHOTS = Hashing(blake3, has_blob)


def _store_open(blobs: str, path: bytes, descriptor: int, hashing: Hashing) -> Stored:
    for _ in range(_ATTEMPTS):
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise SourceChangedError
        if before.st_size <= _WHOLE:
            digest = _store_whole(blobs, descriptor, before.st_size, hashing)
        else:
            digest = _store_in_pieces(blobs, descriptor, before.st_size, hashing)
        if digest is not None and sign(os.fstat(descriptor)) == sign(before):
            return Stored(digest, sign(before), bool(before.st_mode & stat.S_IXUSR))
    raise SnapshotException(
        f"{os.fsdecode(path)} keeps changing while it is read",
        cause="Another program writes to it.",
        hint="Submit again when that program has finished, or add the file to .amlignore.",
    )


def _store_whole(blobs: str, descriptor: int, size: int, hashing: Hashing) -> str | None:
    content = os.pread(descriptor, size + 1, 0)
    if len(content) != size:
        return None
    digest: str = hashing.new(content).hexdigest()
    if not hashing.is_there(blobs, digest, size):
        with _new_file(blobs) as temporary:
            _write_all(temporary.descriptor, content)
            temporary.move_to(blob_path(blobs, digest))
    return digest


def _store_in_pieces(blobs: str, descriptor: int, size: int, hashing: Hashing) -> str | None:
    # A large file may already be stored: reading it twice costs less than writing it once.
    hasher = hashing.new()
    for piece in _pieces(descriptor, size):
        hasher.update(piece)
    digest: str = hasher.hexdigest()
    if hashing.is_there(blobs, digest, size):
        return digest
    hasher = hashing.new()
    copied = 0
    with _new_file(blobs) as temporary:
        for piece in _pieces(descriptor, size):
            hasher.update(piece)
            _write_all(temporary.descriptor, piece)
            copied += len(piece)
        if copied != size:
            return None
        digest = hasher.hexdigest()
        temporary.move_to(blob_path(blobs, digest))
    return digest


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    position = 0
    while position < size:
        piece = os.pread(descriptor, min(_PIECE, size - position), position)
        if not piece:
            return
        yield piece
        position += len(piece)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


class _Temporary:
    def __init__(self, path: str, descriptor: int) -> None:
        self.descriptor = descriptor
        self.is_kept = False
        self._path = path

    def move_to(self, path: str) -> None:
        try:
            os.rename(self._path, path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.rename(self._path, path)
        self.is_kept = True


@contextlib.contextmanager
def _new_file(blobs: str) -> Iterator[_Temporary]:
    # All in one folder: file systems then place them next to each other on the disk.
    path = f"{blobs}/.partial/{os.getpid()}-{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o444)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(path, flags, 0o444)
    temporary = _Temporary(path, descriptor)
    try:
        yield temporary
    finally:
        os.close(descriptor)
        if not temporary.is_kept:
            os.unlink(path)


def write_atomically(blobs: str, path: str, content: bytes) -> None:
    """Write `content` to `path`, in the workspace of `blobs`, so that a reader sees all of it or nothing."""
    with _new_file(blobs) as temporary:
        _write_all(temporary.descriptor, content)
        temporary.move_to(path)


def sweep_forgotten(blobs: str) -> None:
    """Remove files that killed processes left half-written; they are much older than any running copy."""
    limit = time.time() - _FORGOTTEN_SECONDS
    with contextlib.suppress(OSError), os.scandir(f"{blobs}/.partial") as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < limit:
                os.unlink(entry.path)
