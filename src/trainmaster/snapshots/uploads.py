"""Contents that arrive from another machine, in parts. A content counts once all of it is here and has its digest.

An upload lies in `<blobs>/.uploads` until then, one file per digest and sender, so that it can be resumed after any
interruption and nobody can spoil the upload of another sender. One process writes to it at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from typing import Any

from trainmaster.snapshots.blobs import Hashing, blob_path

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FORGOTTEN_SECONDS = 24 * 3600.0
_PIECE = 1 << 22
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadBusyError(Exception):
    """Another request writes to this upload."""


class UploadGapError(Exception):
    """A part starts behind the end of what has arrived."""

    def __init__(self, received: int) -> None:
        super().__init__(received)
        self.received = received


class WrongDigestError(Exception):
    """All bytes have arrived, but they do not have the digest they were announced with. Nothing of them is kept."""


def is_digest(text: object) -> bool:
    """Whether `text` can be a digest, and nothing else: it becomes part of a path."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def count_received(blobs: str, digest: str, sender: str) -> int:
    """How many bytes of an upload have arrived."""
    try:
        return os.stat(_upload_path(blobs, digest, sender), follow_symlinks=False).st_size
    except OSError:
        return 0


class Upload:
    """One upload, open for writing. Close it in any case: what has arrived stays for the next time."""

    def __init__(self, blobs: str, digest: str, sender: str, start: int, hashing: Hashing) -> None:
        """Continue at `start`, which may not be behind what has arrived. What is there behind `start` is dropped."""
        assert is_digest(digest), digest
        self._blobs = blobs
        self._digest = digest
        self._path = _upload_path(blobs, digest, sender)
        self._handle = _open_locked(self._path)
        try:
            size = os.fstat(self._handle).st_size
            if start > size:
                raise UploadGapError(size)
            os.ftruncate(self._handle, start)
            self._hasher: Any = hashing.new()
            for piece in _read_pieces(self._handle, start):
                self._hasher.update(piece)
        except BaseException:
            os.close(self._handle)
            raise
        self.received = start

    def write(self, piece: bytes) -> None:
        """Add the next bytes."""
        self._hasher.update(piece)
        view = memoryview(piece)
        while view:
            written = os.pwrite(self._handle, view, self.received)
            self.received += written
            view = view[written:]

    def finish(self) -> None:
        """Make it a content. Raises WrongDigestError if it is not what was announced; then the upload is dropped."""
        if self._hasher.hexdigest() != self._digest:
            os.unlink(self._path)
            raise WrongDigestError
        os.fchmod(self._handle, 0o444)
        target = blob_path(self._blobs, self._digest)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(self._path, target)

    def move_to(self, path: str) -> None:
        """As `finish`, for a content that gets a name of its own."""
        if self._hasher.hexdigest() != self._digest:
            os.unlink(self._path)
            raise WrongDigestError
        os.rename(self._path, path)

    def close(self) -> None:
        """Release it for the next request."""
        os.close(self._handle)


def sweep_uploads(blobs: str, now: float | None = None) -> None:
    """Remove uploads that nobody has continued for a day."""
    limit = (time.time() if now is None else now) - _FORGOTTEN_SECONDS
    with contextlib.suppress(OSError), os.scandir(f"{blobs}/.uploads") as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < limit:
                os.unlink(entry.path)


def _upload_path(blobs: str, digest: str, sender: str) -> str:
    # The sender's name may have any characters.
    return f"{blobs}/.uploads/{digest}-{sender.encode('utf-8', 'surrogatepass').hex()[:80]}"


def _open_locked(path: str) -> int:
    while True:
        try:
            handle = os.open(path, _OPEN, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been finished between opening and locking.
            if os.stat(path, follow_symlinks=False).st_ino == os.fstat(handle).st_ino:
                return handle
        except BlockingIOError:
            os.close(handle)
            raise UploadBusyError from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _read_pieces(handle: int, size: int) -> Iterator[bytes]:
    place = 0
    while place < size:
        piece = os.pread(handle, min(_PIECE, size - place), place)
        if not piece:
            return
        yield piece
        place += len(piece)
