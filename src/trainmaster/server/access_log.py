"""The access log: one line of JSON per request, without queries, tokens and bodies."""

from __future__ import annotations

import asyncio
import sys
import time

import orjson

_FLUSH_SECONDS = 0.2
_MOST_LINES = 1000


class AccessLog:
    """Writes to standard error, many lines at once: one write per request would cost more than most requests."""

    def __init__(self, is_on: bool = True) -> None:
        self._is_on = is_on
        self._lines: list[bytes] = []
        self._flushing: asyncio.TimerHandle | None = None

    def write(
        self,
        *,
        method: str,
        path: str,
        status: int,
        seconds: float,
        caller: str,
        client: str,
        request_id: str,
        operation: str = "",
    ) -> None:
        """Add one line. `path` has no query: it may contain a secret, such as a code of a sign-in."""
        if not self._is_on:
            return
        entry = {
            "time": round(time.time(), 3),
            "request_id": request_id,
            "client": client,
            "user": caller,
            "method": method,
            "path": path,
            "operation": operation,
            "status": status,
            "ms": round(seconds * 1000, 2),
        }
        self._lines.append(orjson.dumps(entry))
        if len(self._lines) >= _MOST_LINES:
            self.flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was added."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        lines, self._lines = self._lines, []
        if lines:
            sys.stderr.buffer.write(b"\n".join(lines) + b"\n")
            sys.stderr.buffer.flush()
