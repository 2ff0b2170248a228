"""Work that takes minutes. Clients start and follow it by repeating one request, which returns what the log gained."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.activity import Activity
from trainmaster.job.errors import ServiceException, TrainmasterError, UserErrorException
from trainmaster.shared.log_texts import LogPlace, LogText, read_text

# How often a log is looked at while a client follows it.
_LOOK_SECONDS = 0.05
_LONGEST_WAIT = 60.0
# How long the result of finished work is kept for a client that did not receive it.
_KEPT_SECONDS = 600.0
_LONGEST_KEY = 64


@dataclass(frozen=True)
class WorkNews:
    """How far the work is. Once it is `done` there is a result or an error, and nothing more to read."""

    done: bool
    log: LogText
    result: Any = None
    error: dict[str, Any] | None = None


class LongWork:
    """Work in progress and work just finished, by the keys that clients chose."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._ended: dict[str, float] = {}

    async def follow(
        self, key: str, begin: Callable[[], Awaitable[Any]], log: Path, place: LogPlace, seconds: float
    ) -> WorkNews:
        """Starts the work unless it was started with this key; returns as soon as its log grew or it has ended.

        After `seconds` at the latest it returns without news.
        """
        if not 0 < len(key) <= _LONGEST_KEY:
            raise UserErrorException("the work needs a key that no other work has")
        task = self._find_or_start(key, begin)
        end = time.monotonic() + min(seconds, _LONGEST_WAIT)
        while True:
            # In this order: what was written before the end is read, too.
            done = task.done()
            part = await asyncio.to_thread(read_text, log, place)
            if part.text:
                return WorkNews(False, part)
            if done:
                return _as_news(task, part)
            rest = end - time.monotonic()
            if rest <= 0:
                return WorkNews(False, part)
            await asyncio.wait({task}, timeout=min(rest, _LOOK_SECONDS))

    def knows(self, key: str) -> bool:
        """Whether work with this key is in progress, or has just ended."""
        return key in self._tasks

    def _find_or_start(self, key: str, begin: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
        for old in [old for old, at in self._ended.items() if time.monotonic() - at > _KEPT_SECONDS]:
            del self._ended[old], self._tasks[old]
        if key not in self._tasks:
            task = asyncio.ensure_future(self._run(begin))
            task.add_done_callback(lambda _: self._ended.setdefault(key, time.monotonic()))
            self._tasks[key] = task
        return self._tasks[key]

    async def _run(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        with self._activity.working():
            return await begin()

    async def close(self) -> None:
        """Stops all work."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def _as_news(task: asyncio.Task[Any], part: LogText) -> WorkNews:
    if task.cancelled():
        return WorkNews(True, part, error=ServiceException("the dispatcher ended before the work was done").to_wire())
    error = task.exception()
    if error is None:
        return WorkNews(True, part, task.result())
    if isinstance(error, TrainmasterError):
        return WorkNews(True, part, error=error.to_wire())
    # As for any operation: the server logs what is not expected.
    raise error


async def wait_for_growth(log: Path, place: LogPlace, seconds: float) -> LogText:
    """The next part of a log, as soon as there is one; an empty one after `seconds`."""
    end = time.monotonic() + min(seconds, _LONGEST_WAIT)
    while True:
        part = await asyncio.to_thread(read_text, log, place)
        rest = end - time.monotonic()
        if part.text or rest <= 0:
            return part
        with suppress(TimeoutError):
            await asyncio.sleep(min(rest, _LOOK_SECONDS))
