"""Connections of the server to the dispatchers of its workspaces: one pool per workspace.

A dispatcher is started on demand by the same code as the SDK's. If one dies between request and answer, the request is
sent to the next one: every operation may be repeated without harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from trainmaster.job.errors import ServiceException, TrainmasterError, from_wire
from trainmaster.job.helper import messages
from trainmaster.sdk.backend.backend import RunNews
from trainmaster.sdk.backend.local.connection import open_line
from trainmaster.shared.dispatcher_socket import LONGEST_REQUEST
from trainmaster.shared.folders import WorkspaceFolder

_ATTEMPTS = 8
_MOST_CONNECTIONS = 1000
"""Per workspace. A long poll occupies its connection while it waits."""
_MOST_IDLE = 32
_PIECE = 256 * 1024
_FAILURE_SECONDS = 2.0
"""How long a failure to reach the dispatcher is the answer to other requests as well."""


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
    """The connections to one dispatcher."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder
        self._idle: list[_Line] = []
        self._places = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._opening = asyncio.Lock()
        self._failure: tuple[float, TrainmasterError] | None = None

    async def answer(self, request: bytes) -> bytes:
        async with self._places:
            for _ in range(_ATTEMPTS):
                line = self._idle.pop() if self._idle else await self.open()
                try:
                    await line.send(request)
                    reply = await line.receive()
                except (ConnectionError, EOFError):
                    # The others are connected to the same dispatcher, which has ended.
                    line.close()
                    self.close()
                    continue
                except BaseException:
                    # The answer may still arrive, and must not be read as the answer to the next request.
                    line.close()
                    raise
                if len(self._idle) < _MOST_IDLE:
                    self._idle.append(line)
                else:
                    line.close()
                return reply
        raise ServiceException(
            "the dispatcher repeatedly ended before it answered", hint="Its log is dispatcher.log in the workspace."
        )

    async def open(self) -> _Line:
        """A new connection to a running dispatcher, which is started if necessary."""
        asked = time.monotonic()
        async with self._opening:
            if self._failure is not None and self._failure[0] > asked:
                raise self._failure[1]
            try:
                connection = await asyncio.to_thread(_connect, self._folder)
            except TrainmasterError as error:
                # Those who waited for the lock meanwhile would only wait once more for the same failure.
                self._failure = time.monotonic(), error
                raise
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_PIECE)
        return _Line(reader, writer)

    def close(self) -> None:
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
