"""The socket: lines of JSON in, lines of JSON out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import traceback
from typing import Any

from trainmaster.dispatcher.api.operations import Operations, answer_error
from trainmaster.dispatcher.room import NoRoomError, Room, Share
from trainmaster.dispatcher.runs.watchers import Watchers, news
from trainmaster.job.agent.peer import credentials, is_trusted
from trainmaster.job.errors import ServiceException, TrainmasterError, UserErrorException
from trainmaster.job.helper import messages
from trainmaster.shared.dispatcher_socket import LONGEST_REQUEST
from trainmaster.shared.records import TERMINAL

log = logging.getLogger("trainmaster.dispatch")

# What every connection may hold, and what those with longer requests and answers may hold together.
_PIECE = 32 * 1024
_ALL = 2 * LONGEST_REQUEST
# A client that is in the middle of a long request, or of reading a long answer, and does not go on for so long is left.
_STALL_SECONDS = 60.0
# So many different faults of ours are logged with all their lines, each once.
_FAULTS = 50


class Server:
    """Serves clients until it is told to stop."""

    def __init__(self, operations: Operations, watchers: Watchers) -> None:
        self._operations = operations
        self._watchers = watchers
        self._connections: set[asyncio.Task[Any]] = set()
        self._strangers: set[int] = set()
        self._faults: set[tuple[object, ...]] = set()
        self._room = Room(_ALL)
        self.stopping = asyncio.Event()
        self.requests = 0
        """How many were answered: the sign of life for the idle clock."""

    async def listen(self, path: str) -> asyncio.Server:
        """Begins to listen on the unix socket `path`."""
        return await asyncio.start_unix_server(self._serve, path, limit=_PIECE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_own(writer):
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        share = Share(self._room, _PIECE, _STALL_SECONDS)
        try:
            while line := await _read_line(reader, share):
                self.requests += 1
                if not await self._respond(line, share, reader, writer):
                    return
        except _RefusedError as refused:
            # Where the next request begins is not known: the connection ends.
            with contextlib.suppress(ConnectionError):
                await self._send(writer, messages.failure(answer_error(refused.error), {"id": None}))
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            # A client that went away or does not go on, or a dispatcher that ends.
            return
        finally:
            share.give_back()
            self._connections.discard(task)
            writer.close()

    def _is_own(self, writer: asyncio.StreamWriter) -> bool:
        """Whether a client is this user (or root). Another one is told nothing, and logged once."""
        connection = writer.get_extra_info("socket")
        if is_trusted(connection):
            return True
        user = credentials(connection).user
        if user not in self._strangers:
            self._strangers.add(user)
            log.warning("user %d is refused: the workspace belongs to user %d", user, os.geteuid())
        return False

    async def _respond(
        self, line: bytes, share: Share, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answers one request; whether the connection goes on."""
        request: dict[str, Any] = {}
        op: Any = ""
        try:
            request = _read_request(line)
            op, args = request.get("op"), request.get("args", {})
            if op == "runs.watch":
                await self._watch(self._operations.read_watch_request(args), reader, writer)
                return False
            if op == "shutdown":
                self.stopping.set()
                result: Any = None
            else:
                result = await self._operations.call(op, args)
            reply = messages.success(result, request)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 (a fault of one operation must not end the dispatcher)
            self._note(op, error)
            reply = messages.failure(answer_error(error), {"id": request.get("id")})
        share.give_back()
        await self._send(writer, reply)
        return True

    def _note(self, op: Any, error: Exception) -> None:
        """Logs a fault of ours, each once: whoever repeats it must not rotate the log away."""
        if isinstance(error, TrainmasterError | OSError):
            return
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = (str(op)[:60], type(error), place.filename, place.lineno)
        if fault not in self._faults and len(self._faults) < _FAULTS:
            self._faults.add(fault)
            # What was asked, not with which values: there may be a secret among them.
            log.error("request %s (logged once)", fault[0], exc_info=error)

    async def _watch(self, run_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tells of every change until the run has ended, or the client has left."""
        record = self._operations.get_run(run_id)
        with self._watchers.watch(record) as queue:
            await self._send(writer, messages.success(news(record), {"id": 1}))
            ended = record.status in TERMINAL
            left = asyncio.ensure_future(reader.read(1))
            while not ended and not left.done():
                told = asyncio.ensure_future(queue.get())
                await asyncio.wait({told, left}, return_when=asyncio.FIRST_COMPLETED)
                if not told.done():
                    told.cancel()
                    break
                await self._send(writer, messages.success(told.result(), {"id": 1}))
                ended = told.result()["ended"]
            left.cancel()

    async def _send(self, writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        """Sends an answer. ConnectionError if the client has left, or does not read on."""
        text = messages.encode(message) + b"\n"
        share = Share(self._room, 4 * _PIECE, _STALL_SECONDS)
        try:
            # One that is longer than all room there is goes when nothing else is held.
            await share.grow_to(len(text))
            writer.write(text)
            del text
            await _drain(writer)
        except NoRoomError:
            raise ConnectionAbortedError from None
        finally:
            share.give_back()

    async def close(self) -> None:
        """Ends all connections; clients turn to the next dispatcher."""
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


class _RefusedError(Exception):
    """A request that is not read to its end."""

    def __init__(self, error: TrainmasterError) -> None:
        super().__init__(error.headline)
        self.error = error


async def _read_line(reader: asyncio.StreamReader, share: Share) -> bytes:
    """The next request; empty when the client has left."""
    pieces: list[bytes] = []
    count = 0
    while True:
        try:
            # A connection may be idle for as long as it likes, but not within a request.
            async with asyncio.timeout(_STALL_SECONDS if pieces else None):
                piece = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError as longer:
            piece = await reader.readexactly(longer.consumed)
        count += len(piece)
        if count > LONGEST_REQUEST:
            raise _RefusedError(UserErrorException(f"a request has {LONGEST_REQUEST >> 20} MB at most"))
        try:
            await share.grow_to(count)
        except NoRoomError:
            raise _RefusedError(
                ServiceException("the dispatcher has no room for this request now", hint="Try again later.")
            ) from None
        pieces.append(piece)
        if piece.endswith(b"\n"):
            return b"".join(pieces)


def _read_request(line: bytes) -> dict[str, Any]:
    try:
        request = messages.decode(line)
    except ValueError as error:
        raise UserErrorException("the request is not a JSON object", cause=str(error)[:300]) from None
    return {"id": None, **request}


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Returns when nearly all is sent; ConnectionAbortedError when nothing was for a while."""
    left = writer.transport.get_write_buffer_size()
    while True:
        try:
            async with asyncio.timeout(_STALL_SECONDS):
                await writer.drain()
                return
        except TimeoutError:
            before, left = left, writer.transport.get_write_buffer_size()
            if left >= before:
                writer.transport.abort()
                raise ConnectionAbortedError from None
