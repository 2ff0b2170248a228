"""Contents that are being sent to a host, so that two connections do not send the same content."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator


class Transfers:
    """Shared by the connections to one host."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[None]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._running

    @contextlib.contextmanager
    def claim(self, names: Iterable[str]) -> Iterator[None]:
        """The caller sends these contents inside the block. It must not wait for other transfers there: deadlock."""
        done = asyncio.get_running_loop().create_future()
        claimed = list(names)
        self._running.update(dict.fromkeys(claimed, done))
        try:
            yield
        finally:
            for name in claimed:
                del self._running[name]
            done.set_result(None)

    async def wait_for(self, names: Iterable[str]) -> None:
        """Returns when the transfers of these contents have ended, whether or not they succeeded."""
        waiting = {self._running[name] for name in names if name in self._running}
        if waiting:
            await asyncio.wait(waiting)
