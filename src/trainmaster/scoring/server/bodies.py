"""Reads the body of a request, within the limits for time and size."""

from __future__ import annotations

import asyncio
import itertools
from time import monotonic
from typing import Any, Awaitable, Callable, Dict, Optional, Set

Receive = Callable[[], Awaitable[Dict[str, Any]]]

# How much of a body that is too large is still read and discarded, so that its sender gets to read the answer.
_DISCARDED_BYTES = 64 * 1024 * 1024


class Late(Exception):
    """The body did not arrive in time."""


class Gone(Exception):
    """The client has disconnected."""


class TooLarge(Exception):
    """The body is larger than the limit."""


class Bodies:
    """Reads bodies of up to `limit` bytes, each within `seconds`, if `end_overdue` is called regularly."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        # Ordered by deadline, because all bodies have the same time limit.
        self._reading: "Dict[asyncio.Task[Any], float]" = {}
        self._overdue: "Set[asyncio.Task[Any]]" = set()

    async def read(self, receive: Receive, length: Optional[bytes]) -> bytes:
        """Read the complete body; `length` is its content-length header. Raises TooLarge, Late or Gone."""
        task = asyncio.current_task()
        assert task is not None
        self._reading[task] = monotonic() + self._seconds
        try:
            return await self._read(receive, length)
        except asyncio.CancelledError:
            if task not in self._overdue:
                raise
            self._overdue.discard(task)
            raise Late from None
        finally:
            del self._reading[task]

    def end_overdue(self, now: float) -> None:
        """Stop reading bodies whose deadline is before `now`."""
        for task, _ in list(itertools.takewhile(lambda pair: pair[1] < now, self._reading.items())):
            self._overdue.add(task)
            task.cancel()

    async def _read(self, receive: Receive, length: Optional[bytes]) -> bytes:
        if length is not None and int(length) > self._limit:
            # Do not read at all if more is announced than would be discarded.
            if int(length) < _DISCARDED_BYTES:
                await _discard(receive)
            raise TooLarge
        parts, size, more = [], 0, True
        while more:
            message = await _next(receive)
            part: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            parts.append(part)
            size += len(part)
            if size > self._limit:
                if more:
                    await _discard(receive)
                raise TooLarge
        return b"".join(parts)


async def _next(receive: Receive) -> Dict[str, Any]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message


async def _discard(receive: Receive) -> None:
    left = _DISCARDED_BYTES
    while left > 0:
        message = await _next(receive)
        left -= len(message.get("body", b""))
        if not message.get("more_body"):
            return
