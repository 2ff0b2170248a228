"""Work at a host that may be out of reach for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from trainmaster.engines.ssh.ssh_errors import Unreachable
from trainmaster.shared.retry import Backoff, retry

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


async def patiently(
    work: Callable[[], Awaitable[T]], seconds: float, tell: Callable[[Unreachable], None] = lambda error: None
) -> T:
    """Does it again as long as nobody answers, for so many seconds; `tell` hears why it waits."""
    backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
    return await retry(work, Unreachable, backoff=backoff, seconds=seconds, on_error=tell)
