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
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import orjson

from trainmaster.dispatcher.kept_answers import KeptAnswers
from trainmaster.job.errors import ServiceException, TrainmasterError, from_wire
from trainmaster.job.helper import messages
from trainmaster.sdk.backend.backend import RunNews
from trainmaster.sdk.backend.local.connection import open_line
from trainmaster.shared import json_text
from trainmaster.shared.dispatcher_socket import LONGEST_REQUEST, try_line
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.store_version import VersionReader

_ATTEMPTS = 8
_MOST_CONNECTIONS = 1000
"""Per workspace. A long poll occupies its connection while it waits."""
_MOST_IDLE = 32


class Dispatchers:
    """The pools of all workspaces."""

    def __init__(self) -> None:
        self._pools: dict[WorkspaceFolder, _Pool] = {}

    async def call(self, folder: WorkspaceFolder, operation: str, arguments: Mapping[str, Any]) -> Any:
        """The result of an operation. An error of the operation is raised."""
        return messages.result_of(decode(await self.answer(folder, operation, arguments)), from_wire)

    async def answer(
        self, folder: WorkspaceFolder, operation: str, arguments: Mapping[str, Any], /, **texts: bytes
    ) -> bytes:
        """The answer to an operation, as the dispatcher wrote it. `texts` are arguments that are JSON in one line."""
        request = encode(messages.request(operation, arguments))
        if texts:
            # {"id":1,"op":"...","args":{...}}
            more = b",".join(b'"%s":%s' % (name.encode(), text) for name, text in texts.items())
            request = b"%s,%s}}\n" % (request[:-3], more)
        if len(request) > LONGEST_REQUEST:
            raise TrainmasterError(f"{operation}: the request has {len(request) >> 20} MB")
        return await self._pool(folder).answer(request)

    def find_kept_answers(self, folder: WorkspaceFolder) -> KeptAnswers:
        """Answers of operations that stay right until the store changes, by whatever tells requests apart."""
        return self._pool(folder).kept

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
                line.send(request)
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
        self._version: VersionReader | None = None
        self.kept = KeptAnswers(self.read_version)

    async def answer(self, request: bytes) -> bytes:
        async with self._places:
            for _ in range(_ATTEMPTS):
                line = await self._take()
                try:
                    line.send(request)
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
                if self._version is None:
                    self._open_version()
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
        _, line = await asyncio.get_running_loop().create_unix_connection(
            lambda: _Line(self._note_loss), sock=connection
        )
        return line

    def read_version(self) -> int | None:
        """The version of the store; None while it may change, and without a connection to the dispatcher."""
        return self._version.read() if self._version is not None else None

    def _open_version(self) -> None:
        """Begin to read the version: the dispatcher has answered, so it counts. It counts changes of a file only."""
        if not os.path.lexists(self._folder.database_address):
            with contextlib.suppress(OSError):
                self._version = VersionReader(self._folder.store_version)

    def _close_version(self) -> None:
        if self._version is not None:
            self._version.close()
            self._version = None

    def _note_loss(self) -> None:
        """The dispatcher has ended. The next one may have another store, after `trainmaster workspace move`."""
        self._close_version()
        self._close_idle()

    def close(self) -> None:
        """Close all connections that no request uses."""
        self._close_idle()
        self._close_version()
        if self._opener is not None:
            self._opener.cancel()
        self._refuse_waiting(ServiceException("the server closes its connections", hint="Try again."))

    def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for line in idle:
            line.close()


class _Line(asyncio.Protocol):
    """One connection. `on_lost` is called when the dispatcher ends it."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        """The beginning of an answer that has not arrived completely."""
        self._answers: deque[bytes] = deque()
        self._reader: asyncio.Future[bytes] | None = None
        self._is_lost = False
        self._is_closed = False

    def send(self, request: bytes) -> None:
        """Send a request. The answer says whether it has arrived."""
        if self._transport is not None:
            self._transport.write(request)

    async def receive(self) -> bytes:
        """The next answer, one line. Raises EOFError if the dispatcher has ended."""
        if self._answers:
            answer = self._answers.popleft()
            if not self._answers and self._transport is not None:
                self._transport.resume_reading()
            return answer
        if self._is_lost:
            raise EOFError
        self._reader = asyncio.get_running_loop().create_future()
        try:
            return await self._reader
        finally:
            self._reader = None

    def close(self) -> None:
        """End the connection."""
        self._is_closed = True
        # Without a running loop there is nothing left to close.
        with contextlib.suppress(RuntimeError):
            if self._transport is not None:
                self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._take(b"".join((*self._pieces, end, b"\n")))
            self._pieces = []
        if rest:
            self._pieces.append(rest)

    def _take(self, answer: bytes) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(answer)
            return
        self._answers.append(answer)
        if len(self._answers) == 1 and self._transport is not None:
            # Whoever follows something takes its news one after the other; the rest waits in the dispatcher.
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        if self._reader is not None and not self._reader.done():
            self._reader.set_exception(EOFError())
        if not self._is_closed:
            self._on_lost()


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
    return json_text.write(message) + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message in a line."""
    try:
        message: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        return messages.decode(line)
    return message
