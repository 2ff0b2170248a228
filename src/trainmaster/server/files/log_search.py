"""Finds lines in a log, a bounded part of it at a time. Secrets are hidden before anything is compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Read = Callable[[int, int], bytes]
"""Takes a start and a size, and returns that part of the log, with secrets hidden."""

LONGEST_TEXT = 200
MOST_MATCHES = 1000
MOST_BYTES = 128 << 20
"""How much of a log one request reads. The client continues with the next part."""
_BLOCK = 1 << 20
_LONGEST_LINE = 64 << 10
_SHOWN = 300
# Colours of terminals, which may stand within a word.
_SEQUENCE = re.compile(rb"\x1b\[[0-9;:?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class LogMatch:
    """A line that contains the text."""

    offset: int
    """Where the line begins in the log."""
    line: int
    """How many lines are between the place where the search began and this one."""
    text: str


@dataclass(frozen=True)
class LogMatches:
    """The lines found in a part of a log."""

    identity: str
    matches: tuple[LogMatch, ...]
    next: int | None
    """Where to continue; null at the end of the log."""
    lines: int
    """How many lines are between the place where the search began and `next`, or the end of the log."""


def search_log(read: Read, identity: str, size: int, text: str, start: int, limit: int) -> LogMatches:
    """The lines from `start` on that contain `text`; the case of ASCII letters makes no difference.

    `start` is the beginning of a line.
    """
    wanted = text.encode("utf-8").lower()
    found: list[LogMatch] = []
    lines, place = 0, start
    for offset, block in _read_lines(read, start, min(size, start + MOST_BYTES), size):
        for match in _search_block(block, offset, lines, wanted):
            if len(found) == limit:
                return LogMatches(identity, tuple(found), match.offset, match.line)
            found.append(match)
        lines += block.count(b"\n")
        place = offset + len(block)
    return LogMatches(identity, tuple(found), place if place < size and place > start else None, lines)


def _read_lines(read: Read, start: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines with their offsets, up to `end`. A line that is too long is cut."""
    rest = b""
    place = start
    while place < end:
        data = read(place, min(_BLOCK, end - place))
        if not data:
            break
        place += len(data)
        block = rest + data
        cut = block.rfind(b"\n") + 1 or (len(block) if len(block) > _LONGEST_LINE else 0)
        rest = block[cut:]
        if cut:
            yield place - len(block), block[:cut]
    if rest and end >= size:
        yield place - len(rest), rest


def _search_block(block: bytes, offset: int, lines: int, wanted: bytes) -> Iterator[LogMatch]:
    if b"\x1b" in block:
        yield from _search_coloured(block, offset, lines, wanted)
        return
    lower = block.lower()
    counted = 0
    at = lower.find(wanted)
    while at >= 0:
        begin = lower.rfind(b"\n", 0, at) + 1
        end = lower.find(b"\n", at)
        end = len(lower) if end < 0 else end
        lines += lower.count(b"\n", counted, begin)
        counted = begin
        yield LogMatch(offset + begin, lines, _show(block[begin:end]))
        at = lower.find(wanted, end)


def _search_coloured(block: bytes, offset: int, lines: int, wanted: bytes) -> Iterator[LogMatch]:
    for number, line in enumerate(block.split(b"\n")):
        plain = _SEQUENCE.sub(b"", line)
        if wanted in plain.lower():
            yield LogMatch(offset, lines + number, _show(plain))
        offset += len(line) + 1


def _show(line: bytes) -> str:
    """What is shown of a line: without what a progress bar has overwritten.

    >>> _show(b"10%\\r100%\\r\\n")
    '100%'
    """
    return line.rstrip(b"\r\n").rpartition(b"\r")[2][:_SHOWN].decode("utf-8", "replace")
