"""What a growing log gained, as an operation returns it to a client that follows the log."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

_LARGEST_TEXT = 256 * 1024


@dataclass(frozen=True)
class LogPlace:
    """How far a log has been read: the next byte of the file with this identity."""

    identity: str = ""
    start: int = 0


@dataclass(frozen=True)
class LogText:
    """What was read, and where to read on."""

    text: str = ""
    next: LogPlace = LogPlace()


def read_text(path: Path, place: LogPlace) -> LogText:
    """What the log has from `place` on, limited in size. A file that replaced the log is read from its beginning.

    A character whose last bytes are not written yet is left to the next time.
    """
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            identity = str(found.st_ino)
            start = place.start if identity == place.identity and 0 <= place.start <= found.st_size else 0
            file.seek(start)
            block = file.read(_LARGEST_TEXT)
    except (FileNotFoundError, NotADirectoryError):
        return LogText(next=place)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(block)
    waiting = len(decoder.getstate()[0])
    return LogText(text, LogPlace(identity, start + len(block) - waiting))


def read_last(path: Path, lines: int) -> LogText:
    """The last lines of a log, and where to read on."""
    try:
        with open(path, "rb") as file:
            place = LogPlace(str(os.fstat(file.fileno()).st_ino))
            block = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return LogText()
    found = block.decode("utf-8", "replace").splitlines(keepends=True)
    return LogText("".join(found[-lines:] if lines > 0 else []), LogPlace(place.identity, len(block)))
