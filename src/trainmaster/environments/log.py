"""The output of a build, and whether it already contains the error."""

from __future__ import annotations

import io
from collections import deque
from typing import IO

_LAST_LINES = 200


class Log(io.TextIOBase):
    """Forwards what is printed and remembers the last lines.

    >>> log = Log(io.StringIO())
    >>> print("$ uv pip compile x\\nerror: there is no x", file=log)
    >>> log.has("error: there is no x"), log.has("error: there is no y"), log.has("")
    (True, False, False)
    """

    def __init__(self, output: IO[str]) -> None:
        self._output = output
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._line = ""

    def write(self, text: str, /) -> int:
        """Forward the text."""
        *whole, self._line = f"{self._line}{text}".split("\n")
        self._last.extend(line.strip() for line in whole)
        return self._output.write(text)

    def flush(self) -> None:
        """Flush the output."""
        self._output.flush()

    def has(self, text: str) -> bool:
        """Whether `text` has lines and all of them were printed."""
        lines = {line.strip() for line in text.splitlines() if line.strip()}
        return bool(lines) and lines <= {*self._last, self._line.strip()}
