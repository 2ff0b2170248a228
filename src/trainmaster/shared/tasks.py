"""Background tasks. A task that fails is logged and started again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from trainmaster.shared.retry import Backoff

log = logging.getLogger("trainmaster.tasks")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


def start_task(name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Runs `work()` in a task until it returns. After an error it is called again, at growing intervals.

    The caller keeps the task and cancels it at the end.
    """
    return asyncio.get_running_loop().create_task(_run_until_done(name, work), name=name)


async def _run_until_done(name: str, work: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    while True:
        began = loop.time()
        try:
            await work()
            return
        except Exception:
            if loop.time() - began > LONGEST_PAUSE:
                backoff.reset()
            pause = backoff.next_pause()
            log.exception("the task '%s' failed and is started again in %.1f s", name, pause)
        await asyncio.sleep(pause)
