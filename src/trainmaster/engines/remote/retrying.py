"""Work on a host that may be unreachable for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from trainmaster.engines.remote.channel import Unreachable
from trainmaster.shared.retry import Backoff, retry

T = TypeVar("T")


def host_backoff() -> Backoff:
    """The pauses between attempts to reach a host."""
    return Backoff(first=0.2, longest=5.0)


async def retry_unreachable(
    work: Callable[[], Awaitable[T]], seconds: float, on_retry: Callable[[Unreachable], None] = lambda error: None
) -> T:
    """Repeats `work` while the host is unreachable, for up to `seconds`; `on_retry` gets the reason each time."""
    return await retry(work, Unreachable, backoff=host_backoff(), seconds=seconds, on_error=on_retry)
