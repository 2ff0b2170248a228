"""Reading a text file while others append to it."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from trainmaster.shared.redaction import Mask

_BLOCK = 1 << 20


class GrowingText:
    """Reads what is appended to a text file. A file that replaces it is read from its beginning."""

    def __init__(self, path: Path, mask: Callable[[], Mask] = Mask, only: int | None = None) -> None:
        """`mask` returns what has to be hidden now. With `only`, just the file with this inode is read."""
        self.path = path
        self._mask = mask
        self._only = only
        self._begin(None)

    def _begin(self, identity: int | None) -> None:
        self.identity = identity
        """The inode of the file that is read. A file with another inode is not a continuation."""
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def has_begun(self) -> bool:
        """Whether anything was read."""
        return self._offset > 0

    def read_new(self) -> Iterator[str]:
        """What was added since the last call, in parts."""
        # A file that was just moved away has a successor at the next call.
        with contextlib.suppress(FileNotFoundError):
            if self._is_new(os.stat(self.path)):
                yield from self._read()

    def _is_new(self, found: os.stat_result) -> bool:
        if self._only not in (None, found.st_ino):
            return False
        if found.st_ino != self.identity or found.st_size < self._offset:
            self._begin(found.st_ino)
        return found.st_size > self._offset

    def _read(self) -> Iterator[str]:
        with open(self.path, "rb") as file:
            if not self._is_new(os.fstat(file.fileno())):
                return
            file.seek(self._offset)
            while block := file.read(_BLOCK):
                # Fetched after reading: the script had received every secret that it may have printed in this block.
                mask = self._mask()
                start = max(0, self._offset - mask.reach)
                before = os.pread(file.fileno(), self._offset - start, start) if mask else b""
                self._offset = file.tell()
                yield self._decoder.decode(mask.hide_next(before, block))
