"""The log: one line per request, and what the script prints, with the id of its request."""

from __future__ import annotations

import contextvars
import io
import os
import threading
import time
from typing import TextIO

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="-")


class Log:
    """Appends lines to a file, from any thread."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._second = -1
        self._prefix = ""

    def stamp(self, now: float) -> str:
        """The time at the start of a line; the date part is computed once per second."""
        second = int(now)
        if second != self._second:
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._prefix}.{int((now - second) * 1000):03d}Z"

    def write(self, text: str) -> None:
        """Write lines in one call, because replicas append to the same file."""
        rest = text.encode("utf-8", "backslashreplace")
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError:
            # A full disk must not end the service; the lines are lost.
            return

    def message(self, text: str) -> None:
        """Write lines of the server or the script, each with the time and the id of its request."""
        start = "{} {} | ".format(self.stamp(time.time()), request_id.get())
        self.write("".join(start + line + "\n" for line in text.rstrip("\n").split("\n")))


class Printed(io.TextIOBase):
    """Receives what the script prints: complete lines go to the log at once."""

    def __init__(self, log: Log, original: TextIO) -> None:
        self._log = log
        self._original = original
        self._rest = threading.local()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._original.fileno()

    def write(self, text: str) -> int:
        whole, end, rest = (getattr(self._rest, "text", "") + text).rpartition("\n")
        self._rest.text = rest
        if end:
            self._log.message(whole)
        return len(text)

    def flush(self) -> None:
        """Do nothing: complete lines are already written."""
