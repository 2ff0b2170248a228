"""Contents that are being sent to a host just now, so that two connections to it do not both send the same."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator


class UnderWay:
    """Shared by the connections to one host."""

    def __init__(self) -> None:
        self._sent: dict[str, asyncio.Future[None]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._sent

    @contextlib.contextmanager
    def claim(self, names: Iterable[str]) -> Iterator[None]:
        """While the block lasts, these are sent by whoever is in it. Nobody may wait for others in there."""
        done = asyncio.get_running_loop().create_future()
        claimed = list(names)
        self._sent.update(dict.fromkeys(claimed, done))
        try:
            yield
        finally:
            for name in claimed:
                del self._sent[name]
            done.set_result(None)

    async def gone(self, names: Iterable[str]) -> None:
        """Returns when those who send these now have come to an end, good or bad."""
        waiting = {self._sent[name] for name in names if name in self._sent}
        if waiting:
            await asyncio.wait(waiting)
