"""Reading on in a text file that others append to."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from trainmaster.shared.redaction import Mask

_BLOCK = 1 << 20


class GrowingText:
    """Reads on in a text file that others append to. A file that was put in its place is read from its beginning."""

    def __init__(self, path: Path, mask: Callable[[], Mask] = Mask, only: int | None = None) -> None:
        """`mask` gives what has to be hidden as of now. Of the file with identity `only`, no other is read."""
        self.path = path
        self._mask = mask
        self._only = only
        self._begin(None)

    def _begin(self, identity: int | None) -> None:
        self.identity = identity
        """Of the file that is read; another one's text is no continuation."""
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def begun(self) -> bool:
        """Whether any of it was read."""
        return self._offset > 0

    def new(self) -> Iterator[str]:
        """What was added since the last time, in parts."""
        # One that is just moved away has a successor the next time.
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
                # Asked after reading: whatever was printed before now had been given to the script before.
                mask = self._mask()
                start = max(0, self._offset - mask.reach)
                before = os.pread(file.fileno(), self._offset - start, start) if mask else b""
                self._offset = file.tell()
                yield self._decoder.decode(mask.hide_next(before, block))
