"""The version of a workspace's store, in a file that other processes of the machine can read.

A server keeps answers of the dispatcher, and reads this number before it gives one of them again. The number is odd
while the store may change: from before a transaction writes until it has ended, and while no dispatcher serves the
store. So if somebody has read the same even number twice, nothing was written in between. The file stays when a
dispatcher ends, however it ends, and the next one goes on counting before it opens the store. Nobody else writes to
the store, because it is a file of SQLite that one process locks.

It is written and read with system calls. Mapped into memory, a file that is cut off would end the process that reads.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_SIZE = 8
_MASK = (1 << 8 * _SIZE) - 1


class StoreVersion:
    """The number, as the only process that may write to the store counts it.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "version"
    >>> version, reader = StoreVersion(file), VersionReader(file)
    >>> reader.read()
    >>> version.end_change()
    >>> before = reader.read()
    >>> version.begin_change()
    >>> reader.read()
    >>> version.end_change()
    >>> reader.read() - before
    2
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._number = _read(self._file) | 1
        self._write()

    def begin_change(self) -> None:
        """From now on the store may change."""
        self._number |= 1
        self._write()

    def end_change(self) -> None:
        """The store stays as it is now."""
        self._number = (self._number + 1) & _MASK
        # If it cannot be written, the number stays odd, and nobody relies on it.
        with contextlib.suppress(OSError):
            self._write()

    def close(self) -> None:
        """Nobody counts any more."""
        with contextlib.suppress(OSError):
            self.begin_change()
        os.close(self._file)

    def _write(self) -> None:
        os.pwrite(self._file, self._number.to_bytes(_SIZE, "little"), 0)


class VersionReader:
    """The number, as other processes see it. Raises OSError if there is no such file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)

    def read(self) -> int | None:
        """The number of the store as it is now; None while it may change."""
        number = _read(self._file)
        return None if number & 1 else number

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _read(file: int) -> int:
    """The number in the file. A file that is too short has an odd one."""
    text = os.pread(file, _SIZE, 0)
    return int.from_bytes(text, "little") if len(text) == _SIZE else 1
