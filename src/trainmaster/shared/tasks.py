"""Tasks that nobody awaits. One that fails is logged and started again, so that one error cannot end it for good."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

log = logging.getLogger("trainmaster.tasks")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


def growing_pauses() -> Iterator[float]:
    """Seconds to wait between one attempt and the next, without end."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)


def start_task(name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Runs `work()` in a task until it returns. After an error it is called again, at growing intervals.

    The caller keeps the task and cancels it at the end.
    """
    return asyncio.get_running_loop().create_task(_run_until_done(name, work), name=name)


async def _run_until_done(name: str, work: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    pauses = growing_pauses()
    while True:
        began = loop.time()
        try:
            await work()
            return
        except Exception:
            if loop.time() - began > LONGEST_PAUSE:
                pauses = growing_pauses()
            pause = next(pauses)
            log.exception("the task '%s' failed and is started again in %.1f s", name, pause)
        await asyncio.sleep(pause)
