"""The way on which code, environments and data come to a login node: connections of their own, so that large files hold
up neither commands nor logs. There are a few, so that a small run does not wait for the large environment of another;
they are closed when nothing was brought for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from trainmaster.engines.ssh.cleanup import Cleanup
from trainmaster.engines.ssh.host import SshHost
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.engines.ssh.ssh_errors import Unreachable
from trainmaster.engines.ssh.under_way import UnderWay
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.tasks import start_task

_AT_ONCE = 4
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


class Upload:
    """To one login node."""

    def __init__(self, host: SshHost, root: str, patience: float, left: Cleanup) -> None:
        self._host = host
        self._root = root
        self._patience = patience
        self._left = left
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._idle: list[tuple[Session, HostFacts]] = []
        self._busy: set[Session] = set()
        self._freed = asyncio.Condition()
        self._under_way = UnderWay()
        self._coming: dict[str, asyncio.Future[None]] = {}
        self._there: set[str] = set()
        self._closing: asyncio.TimerHandle | None = None
        self._closer: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def turn(self, tell: Callable[[str], None], what: str = "") -> AsyncIterator[Carrier]:
        """Waits for its turn, and connects if need be. What goes wrong in the block breaks the connection off.

        `what` names something large that others may need too: who brings it first does so alone, and the others wait
        without taking up a connection.
        """
        if what in self._coming or self._turns.locked():
            tell(f"waiting until others have brought theirs to {self._host.shown}")
        async with self._first_with(what), self._turns:
            tell("")
            opened = await self._connected()
            self._busy.add(opened[0])
            try:
                yield Carrier(*opened, tell)
            except BaseException:
                # It may have been in the middle of a frame.
                await opened[0].close()
                raise
            else:
                self._put_back(opened)
            finally:
                self._busy.discard(opened[0])
                async with self._freed:
                    self._freed.notify_all()

    @contextlib.asynccontextmanager
    async def _first_with(self, what: str) -> AsyncIterator[None]:
        while what in self._coming:
            await asyncio.wait([self._coming[what]])
        if not what or what in self._there:
            yield
            return
        self._coming[what] = asyncio.get_running_loop().create_future()
        try:
            yield
            self._there.add(what)
        finally:
            self._coming.pop(what).set_result(None)

    async def _connected(self) -> tuple[Session, HostFacts]:
        while True:
            while self._idle:
                opened = self._idle.pop()
                if await _answers(opened[0]):
                    return opened
                await opened[0].close()
            try:
                return await self._connect()
            except Unreachable:
                if not self._busy:
                    raise
            # Some sites let nobody have many connections: then those that are there are used in turns.
            async with self._freed:
                await self._freed.wait_for(lambda: self._idle or not self._busy)

    async def _connect(self) -> tuple[Session, HostFacts]:
        session, facts = await Session.open(self._host, self._root, self._patience)
        session.under_way = self._under_way
        try:
            await self._left.settle(session)
        except BaseException:
            await session.close()
            raise
        return session, facts

    async def tidy(self) -> None:
        """Removes what is left of runs that are over."""
        async with self.turn(lambda sentence: None) as carrier:
            await self._left.settle(carrier.session)

    def _put_back(self, opened: tuple[Session, HostFacts]) -> None:
        self._idle.append(opened)
        if self._closing is not None:
            self._closing.cancel()
        self._closing = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._begin_to_close)

    def _begin_to_close(self) -> None:
        self._closer = start_task("closing idle connections", self._close_idle)

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop()[0].close()

    async def close(self) -> None:
        """The dispatcher ends."""
        if self._closing is not None:
            self._closing.cancel()
        if self._closer is not None:
            await asyncio.gather(self._closer, return_exceptions=True)
        await self._close_idle()
        for session in list(self._busy):
            await session.close()


async def _answers(session: Session) -> bool:
    """Whether a connection that was not used for a while is still one."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await session.call({"op": "missing", "paths": []})
    except (ComputeTargetException, TimeoutError):
        return False
    return True
