"""The headers `Range` and `Content-Range` (RFC 9110, section 14). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BYTES = re.compile(r"bytes=\s*(?:(\d{1,18})\s*-\s*(\d{0,18})|-\s*(\d{1,18}))\s*", re.IGNORECASE)
_CONTENT = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.IGNORECASE)


class UnsatisfiableRangeError(Exception):
    """The range starts after the end of the file."""


@dataclass(frozen=True)
class Span:
    """The bytes from `start` up to `end`, without `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return self.end - self.start


def parse_range(header: str | None, size: int) -> Span | None:
    """The part of a file of `size` bytes that a request asks for; None for the whole file.

    A header that is malformed or asks for several ranges is ignored, as the standard allows.

    >>> parse_range("bytes=10-19", 100), parse_range("bytes=-5", 100), parse_range("bytes=90-", 100)
    (Span(start=10, end=20), Span(start=95, end=100), Span(start=90, end=100))
    >>> parse_range("bytes=0-1,5-6", 100) is None
    True
    """
    found = _BYTES.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        if int(suffix) == 0 or size == 0:
            raise UnsatisfiableRangeError
        return Span(max(0, size - int(suffix)), size)
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise UnsatisfiableRangeError
    return Span(int(first), min(size, int(last) + 1) if last else size)


@dataclass(frozen=True)
class Part:
    """A part of an upload: the bytes from `start` up to `end` of `total`."""

    start: int
    end: int
    total: int


def parse_content_range(header: str) -> Part | None:
    """The part of an upload that a request carries; None for a malformed header.

    >>> parse_content_range("bytes 10-19/100")
    Part(start=10, end=20, total=100)
    >>> parse_content_range("bytes 10-100/100") is None
    True
    """
    found = _CONTENT.fullmatch(header.strip())
    if found is None:
        return None
    start, last, total = map(int, found.groups())
    return Part(start, last + 1, total) if start <= last < total else None
