"""Retrying with growing pauses, for everything outside of jobs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


class Backoff:
    """The pauses between one attempt and the next. Each is `factor` times the one before, up to `longest` seconds.

    >>> backoff = Backoff(first=0.5, longest=3.0)
    >>> [backoff.next_pause() for _ in range(4)]
    [0.5, 1.0, 2.0, 3.0]
    >>> backoff.reset()
    >>> backoff.next_pause()
    0.5
    """

    def __init__(self, first: float = 0.5, longest: float = 30.0, factor: float = 2.0) -> None:
        self.longest = longest
        self._first = first
        self._factor = factor
        self._pause = first

    def next_pause(self) -> float:
        """Seconds to wait before the next attempt."""
        pause = self._pause
        self._pause = min(pause * self._factor, self.longest)
        return pause

    async def sleep(self) -> None:
        """Waits until the next attempt is due."""
        # Not at the top: it takes long to import, and the supervisor of a service does without it.
        import asyncio

        await asyncio.sleep(self.next_pause())

    def block(self) -> None:
        """Like `sleep`, for a thread."""
        time.sleep(self.next_pause())

    def reset(self) -> None:
        """Starts over with the first pause, after something has succeeded."""
        self._pause = self._first


def pause_after(failures: int, first: float, longest: float) -> float:
    """The pause after that many failures in a row, where the number is known and not the pause before.

    >>> [pause_after(failures, first=0.5, longest=30.0) for failures in (0, 1, 2, 3, 1000)]
    [0.0, 0.5, 1.0, 2.0, 30.0]
    """
    if failures < 1:
        return 0.0
    # The exponent is limited: a float overflows long before a count of failures ends.
    return min(longest, first * 2.0 ** min(failures - 1, 64))


async def retry(
    work: Callable[[], Awaitable[T]],
    *errors: type[E],
    should_retry: Callable[[E], bool] = lambda error: True,
    backoff: Backoff | None = None,
    seconds: float = float("inf"),
    on_error: Callable[[E], None] = lambda error: None,
) -> T:
    """The result of `work()`, which is called again after one of `errors` for which `should_retry` is true.

    `on_error` hears of each such error before the pause. Any other error is raised, and any error after `seconds`.
    """
    backoff = backoff or Backoff()
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await work()
        except errors as error:
            if not should_retry(error) or time.monotonic() > deadline:
                raise
            on_error(error)
        await backoff.sleep()
