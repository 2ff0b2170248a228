"""Connections for uploads to one host, separate from the others so that large files delay neither commands nor logs.

There are up to four, so that a small run does not wait for the large environment of another run. They are closed after
30 seconds without an upload.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from trainmaster.engines.remote.channel import Host, Unreachable
from trainmaster.engines.remote.cleanup import Cleanup
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.transfers import Transfers
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.tasks import start_task

_MOST_CONNECTIONS = 4
_IDLE_SECONDS = 30.0
_ANSWER_SECONDS = 10.0


def _ignore(sentence: str) -> None:
    """For uploads that nobody watches."""


class UploadPool:
    """The connections to one host."""

    def __init__(self, host: Host, root: str, silence: float, cleanup: Cleanup) -> None:
        self._host = host
        self._root = root
        self._silence = silence
        self._cleanup = cleanup
        self._turns = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._freed = asyncio.Condition()
        self._transfers = Transfers()
        self._arriving: dict[str, asyncio.Future[None]] = {}
        self._arrived: set[str] = set()
        self._closing: asyncio.TimerHandle | None = None
        self._closer: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def turn(self, report: Callable[[str], None] = _ignore, large: str = "") -> AsyncIterator[Connection]:
        """Waits for a connection and opens one if necessary. An error in the block closes the connection.

        `large` names something that other runs may need too. The first run that needs it uploads it; the others wait
        without a connection.
        """
        if large in self._arriving or self._turns.locked():
            report(f"waiting for the uploads of other runs to {self._host.label}")
        async with self._alone_with(large), self._turns:
            report("")
            connection = await self._connect()
            self._busy.add(connection)
            try:
                yield connection
            except BaseException:
                # It may be in the middle of a frame.
                await connection.close()
                raise
            else:
                self._put_back(connection)
            finally:
                self._busy.discard(connection)
                async with self._freed:
                    self._freed.notify_all()

    @contextlib.asynccontextmanager
    async def _alone_with(self, large: str) -> AsyncIterator[None]:
        while large in self._arriving:
            await asyncio.wait([self._arriving[large]])
        if not large or large in self._arrived:
            yield
            return
        self._arriving[large] = asyncio.get_running_loop().create_future()
        try:
            yield
            self._arrived.add(large)
        finally:
            self._arriving.pop(large).set_result(None)

    async def _connect(self) -> Connection:
        while True:
            while self._idle:
                connection = self._idle.pop()
                if await _answers(connection):
                    return connection
                await connection.close()
            try:
                return await self._open()
            except Unreachable:
                if not self._busy:
                    raise
            # Some sites limit the number of connections. Then the open ones are used in turns.
            async with self._freed:
                await self._freed.wait_for(lambda: self._idle or not self._busy)

    async def _open(self) -> Connection:
        connection = await Connection.open(self._host, self._root, self._silence)
        connection.transfers = self._transfers
        try:
            await self._cleanup.remove_remains(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def remove_remains(self) -> None:
        """Removes what finished runs left on the host."""
        async with self.turn() as connection:
            await self._cleanup.remove_remains(connection)

    def _put_back(self, connection: Connection) -> None:
        self._idle.append(connection)
        if self._closing is not None:
            self._closing.cancel()
        self._closing = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._start_closing)

    def _start_closing(self) -> None:
        self._closer = start_task("closing idle connections", self._close_idle)

    async def _close_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def close(self) -> None:
        """Closes all connections."""
        if self._closing is not None:
            self._closing.cancel()
        if self._closer is not None:
            await asyncio.gather(self._closer, return_exceptions=True)
        await self._close_idle()
        for connection in list(self._busy):
            await connection.close()


async def _answers(connection: Connection) -> bool:
    """Whether a connection that was idle still works."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await connection.call({"op": "missing", "paths": []})
    except (ComputeTargetException, TimeoutError):
        return False
    return True
