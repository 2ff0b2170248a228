"""Work at a host that may be out of reach for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from trainmaster.engines.ssh.ssh_errors import Unreachable

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


async def patiently(
    work: Callable[[], Awaitable[T]], seconds: float, tell: Callable[[Unreachable], None] = lambda error: None
) -> T:
    """Does it again as long as nobody answers, for so many seconds; `tell` hears why it waits."""
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except Unreachable as error:
            if time.monotonic() > deadline:
                raise
            tell(error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
