"""Connections of the server to the dispatchers of its workspaces: one pool per workspace.

A dispatcher is started on demand by the same code as the SDK's. If one dies between request and answer, the request is
sent to the next one: every operation may be repeated without harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from trainmaster.job.errors import ServiceException, TrainmasterError, from_wire
from trainmaster.job.helper import messages
from trainmaster.sdk.backend.backend import RunNews
from trainmaster.sdk.backend.local.connection import open_line
from trainmaster.shared.dispatcher_socket import LONGEST_REQUEST, try_line
from trainmaster.shared.folders import WorkspaceFolder

_ATTEMPTS = 8
_MOST_CONNECTIONS = 1000
"""Per workspace. A long poll occupies its connection while it waits."""
_MOST_IDLE = 32
_PIECE = 256 * 1024


class Dispatchers:
    """The pools of all workspaces."""

    def __init__(self) -> None:
        self._pools: dict[WorkspaceFolder, _Pool] = {}

    async def call(self, folder: WorkspaceFolder, operation: str, arguments: Mapping[str, Any]) -> Any:
        """The result of an operation. An error of the operation is raised."""
        return messages.result_of(decode(await self.answer(folder, operation, arguments)), from_wire)

    async def answer(self, folder: WorkspaceFolder, operation: str, arguments: Mapping[str, Any]) -> bytes:
        """The answer to an operation, as the dispatcher wrote it."""
        request = encode(messages.request(operation, arguments))
        if len(request) > LONGEST_REQUEST:
            raise TrainmasterError(f"{operation}: the request has {len(request) >> 20} MB")
        return await self._pool(folder).answer(request)

    async def watch(self, folder: WorkspaceFolder, run_id: str) -> AsyncIterator[RunNews]:
        """The state of a run now and at each change, until it has ended."""
        async for news in self.subscribe(folder, "runs.watch", {"run_id": run_id}):
            yield news
            if news["ended"]:
                return

    async def subscribe(
        self, folder: WorkspaceFolder, operation: str, arguments: Mapping[str, Any]
    ) -> AsyncIterator[Any]:
        """All answers to one request. If the dispatcher dies, the request is sent to the next one."""
        request = encode(messages.request(operation, arguments))
        while True:
            line = await self._pool(folder).open()
            try:
                await line.send(request)
                while True:
                    yield messages.result_of(decode(await line.receive()), from_wire)
            except (ConnectionError, EOFError):
                continue
            finally:
                line.close()

    async def is_running(self, folder: WorkspaceFolder) -> bool:
        """Whether a dispatcher listens; none is started."""
        line = await asyncio.to_thread(try_line, folder)
        if line is not None:
            line.close()
        return line is not None

    def count_failing(self) -> int:
        """How many dispatchers could not be reached at the last attempt."""
        return sum(pool.is_failing for pool in self._pools.values())

    async def forget(self, folder: WorkspaceFolder) -> None:
        """Close the connections to one dispatcher."""
        pool = self._pools.pop(folder, None)
        if pool is not None:
            pool.close()

    async def close(self) -> None:
        """Close all connections; the dispatchers and their runs go on."""
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    def _pool(self, folder: WorkspaceFolder) -> _Pool:
        pool = self._pools.get(folder)
        if pool is None:
            pool = self._pools[folder] = _Pool(folder)
        return pool


class _Pool:
    """The connections to one dispatcher.

    Requests get connections in the order in which they arrived: one that becomes free, or a new one, whichever is
    first. Otherwise a request that waits for a new connection would be overtaken by later ones.
    """

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder
        self._idle: list[_Line] = []
        self._waiting: deque[asyncio.Future[_Line]] = deque()
        self._places = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._opener: asyncio.Task[None] | None = None
        self.is_failing = False
        """Whether the dispatcher could not be reached at the last attempt."""

    async def answer(self, request: bytes) -> bytes:
        async with self._places:
            for _ in range(_ATTEMPTS):
                line = await self._take()
                try:
                    await line.send(request)
                    reply = await line.receive()
                except (ConnectionError, EOFError):
                    # The others are connected to the same dispatcher, which has ended.
                    line.close()
                    self._close_idle()
                    continue
                except BaseException:
                    # The answer may still arrive, and must not be read as the answer to the next request.
                    line.close()
                    raise
                self._give(line)
                return reply
        raise ServiceException(
            "the dispatcher repeatedly ended before it answered", hint="Its log is dispatcher.log in the workspace."
        )

    async def _take(self) -> _Line:
        if self._idle:
            return self._idle.pop()
        place: asyncio.Future[_Line] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        if self._opener is None:
            self._opener = asyncio.create_task(self._open_for_waiting())
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._give(place.result())
            raise

    def _give(self, line: _Line) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(line)
                return
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(line)
        else:
            line.close()

    async def _open_for_waiting(self) -> None:
        """Open one connection after the other while requests wait. A failure is the answer to all that wait."""
        try:
            while self._waiting:
                self._give(await self.open())
        except Exception as error:  # noqa: BLE001 (those who wait must not wait forever)
            self._refuse_waiting(error)
        finally:
            self._opener = None

    def _refuse_waiting(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, deque()
        for place in waiting:
            if not place.done():
                place.set_exception(error)

    async def open(self) -> _Line:
        """A new connection to a running dispatcher, which is started if necessary."""
        connecting = asyncio.get_running_loop().run_in_executor(None, _connect, self._folder)
        try:
            connection = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_close_result)
            raise
        except Exception:
            self.is_failing = True
            raise
        self.is_failing = False
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_PIECE)
        return _Line(reader, writer)

    def close(self) -> None:
        """Close all connections that no request uses."""
        self._close_idle()
        if self._opener is not None:
            self._opener.cancel()
        self._refuse_waiting(ServiceException("the server closes its connections", hint="Try again."))

    def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for line in idle:
            line.close()


class _Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, request: bytes) -> None:
        self._writer.write(request)
        if len(request) > _PIECE:
            await self._writer.drain()

    async def receive(self) -> bytes:
        """The next answer, one line. Raises EOFError if the dispatcher has ended."""
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as longer:
            return await self._receive_long(longer.consumed)

    async def _receive_long(self, count: int) -> bytes:
        pieces = [await self._reader.readexactly(count)]
        while True:
            try:
                pieces.append(await self._reader.readuntil(b"\n"))
                return b"".join(pieces)
            except asyncio.LimitOverrunError as longer:
                pieces.append(await self._reader.readexactly(longer.consumed))

    def close(self) -> None:
        # Without a running loop there is nothing left to close.
        with contextlib.suppress(RuntimeError):
            self._writer.close()


def _connect(folder: WorkspaceFolder) -> socket.socket:
    """Blocking: a connection that the dispatcher has greeted."""
    line = open_line(folder)
    try:
        return socket.socket(fileno=os.dup(line.fileno()))
    finally:
        line.close()


def _close_result(connecting: asyncio.Future[socket.socket]) -> None:
    """Close a connection that nobody waits for any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as one line. Numbers that JSON does not have (NaN) are written as Python does."""
    return messages.encode(message) + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message in a line."""
    try:
        message: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        return messages.decode(line)
    return message
