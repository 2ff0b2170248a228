"""The way on which code, environments and data come to a login node: a connection of its own, so that large files hold
up neither commands nor logs. One for all runs, in turns; it is closed when nothing was brought for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from trainmaster.engines.ssh.host import SshHost
from trainmaster.engines.ssh.left import Left
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.errors import ComputeTargetException

_IDLE_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Carrier:
    """One turn of it, for one run."""

    session: Session
    facts: HostFacts
    tell: Callable[[str], None]
    """Hears what is being brought, in a sentence; empty when it is there."""

    def say(self, what: str) -> Callable[[int, int], None]:
        def told(done: int, total: int) -> None:
            part = f"{done // _MEGABYTE} of {total // _MEGABYTE} MB"
            self.tell(f"bringing the {what} to {self.session.host.shown}: {part}" if done < total else "")

        return told


class Delivery:
    """To one login node."""

    def __init__(self, host: SshHost, root: str, patience: float, left: Left) -> None:
        self._host = host
        self._root = root
        self._patience = patience
        self._left = left
        self._turn = asyncio.Lock()
        self._open: tuple[Session, HostFacts] | None = None
        self._closing: asyncio.TimerHandle | None = None
        self._closer: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def turn(self, tell: Callable[[str], None]) -> AsyncIterator[Carrier]:
        """Waits for its turn, and connects if need be. What goes wrong in the block breaks the connection off."""
        async with self._turn:
            if self._closing is not None:
                self._closing.cancel()
            try:
                yield Carrier(*await self._connected(), tell)
            except BaseException:
                # It may have been in the middle of a frame.
                await self._close()
                raise
            self._closing = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._begin_to_close)

    @property
    def is_busy(self) -> bool:
        """Whether somebody has his turn."""
        return self._turn.locked()

    async def _connected(self) -> tuple[Session, HostFacts]:
        if self._open is not None and not await _answers(self._open[0]):
            await self._close()
        if self._open is None:
            self._open = await Session.open(self._host, self._root, self._patience)
            await self._left.settle(self._open[0])
        return self._open

    async def tidy(self) -> None:
        """Removes what is left of runs that are over."""
        async with self.turn(lambda sentence: None) as carrier:
            await self._left.settle(carrier.session)

    def _begin_to_close(self) -> None:
        self._closer = asyncio.get_running_loop().create_task(self._close_in_turn())

    async def _close_in_turn(self) -> None:
        async with self._turn:
            await self._close()

    async def close(self) -> None:
        """The dispatcher ends."""
        if self._closing is not None:
            self._closing.cancel()
        if self._closer is not None:
            self._closer.cancel()
        await self._close()

    async def _close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened[0].close()


async def _answers(session: Session) -> bool:
    """Whether a connection that was not used for a while is still one."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await session.call({"op": "missing", "paths": []})
    except (ComputeTargetException, TimeoutError):
        return False
    return True
