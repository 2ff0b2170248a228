"""The access log: one line of JSON per request, without queries, tokens and bodies."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import orjson

_FLUSH_SECONDS = 0.2
_MOST_LINES = 1000
_NAMES = ("time", "request_id", "client", "user", "method", "path", "operation", "status", "ms")


class AccessLog:
    """Writes to standard error, many lines at once: one write per request would cost more than most requests."""

    def __init__(self, is_on: bool = True) -> None:
        self._is_on = is_on
        self._entries: list[tuple[object, ...]] = []
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
        self._entries.append((time.time(), request_id, client, caller, method, path, operation, status, seconds * 1000))
        if len(self._entries) >= _MOST_LINES:
            self.flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what was added."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        entries, self._entries = self._entries, []
        if entries:
            sys.stderr.buffer.write(b"".join(orjson.dumps(_describe(each)) + b"\n" for each in entries))
            sys.stderr.buffer.flush()


def _describe(entry: tuple[Any, ...]) -> dict[str, Any]:
    found = dict(zip(_NAMES, entry, strict=True))
    return {**found, "time": round(found["time"], 3), "ms": round(found["ms"], 2)}
