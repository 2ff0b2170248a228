"""Hiding the values of secrets in what a job printed. Pure but for `hide_in_file`.

Every byte of a value becomes a star: texts keep their length, so that a log can be masked while it is read and on disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

SHORTEST = 4
"""Shorter values are not hidden: they would be found everywhere."""
_SHORTEST_LINE = 8
_BLOCK = 1 << 20


class Mask:
    """Hides some values in bytes.

    >>> Mask(["hunter22"]).hide(b"login hunter22 ok")
    b'login ******** ok'
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)
        self._reach = max(map(len, self._forms), default=1) - 1

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def reach(self) -> int:
        """How many bytes before a text may be the beginning of a value that ends in it."""
        return self._reach

    def hide(self, data: bytes) -> bytes:
        """`data` with stars in the place of every value."""
        return self._make_stars(data, self._spans(data)) if self._forms else data

    def hide_next(self, before: bytes, data: bytes) -> bytes:
        """`data`, which follows `before`; what follows it is not known yet, so the beginning of a value is hidden too.

        >>> Mask(["hunter22"]).hide_next(b"login hunt", b"er22, hunter")
        b'****, ******'
        """
        if not self._forms:
            return data
        whole = before + data
        return self._make_stars(whole, [*self._spans(whole), *self._beginnings(whole)])[len(before) :]

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        for form in self._forms:
            at = data.find(form)
            while at >= 0:
                yield at, at + len(form)
                at = data.find(form, at + 1)

    def _beginnings(self, data: bytes) -> Iterator[tuple[int, int]]:
        for form in self._forms:
            at = data.find(form[:SHORTEST], max(0, len(data) - len(form) + 1))
            while at >= 0:
                if form.startswith(data[at:]):
                    yield at, len(data)
                at = data.find(form[:SHORTEST], at + 1)

    def hide_in_file(self, path: Path) -> int:
        """Overwrite the values in a file that no process writes any more, and return how many there were."""
        if not self._forms:
            return 0
        found = 0
        with open(path, "r+b") as file:
            start, block = 0, file.read(_BLOCK)
            while block:
                for first, end in self._spans(block):
                    os.pwrite(file.fileno(), b"*" * (end - first), start + first)
                    found += 1
                if len(block) < _BLOCK:
                    break
                start += len(block) - self._reach
                file.seek(start)
                block = file.read(_BLOCK)
        return found

    @staticmethod
    def _make_stars(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
        starred = bytearray(data)
        for first, end in spans:
            starred[first:end] = b"*" * (end - first)
        return bytes(starred)


def _forms(value: str) -> set[bytes]:
    """How a value may stand in a text: as it is, line by line, and as JSON, or JSON within JSON, writes it."""
    lines = {line for line in value.splitlines() if len(line.strip()) >= _SHORTEST_LINE}
    texts = {value, value.strip(), *lines}
    for _ in range(2):
        texts |= {json.dumps(text, ensure_ascii=plain)[1:-1] for text in texts for plain in (True, False)}
    encoded = {text.encode("utf-8", "surrogatepass") for text in texts}
    return {form for form in encoded if len(form) >= SHORTEST}
