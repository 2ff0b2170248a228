"""The server on the socket: requests and answers are lines of JSON."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from trainmaster.dispatcher.api.operations import Operations, answer_error
from trainmaster.dispatcher.kept_answers import KeptAnswers
from trainmaster.dispatcher.operation import JsonText
from trainmaster.dispatcher.room import NoRoomError, Room, Share
from trainmaster.dispatcher.runs.watchers import Watchers, news
from trainmaster.dispatcher.store.connection import is_lost
from trainmaster.job.agent.peer import credentials, is_trusted
from trainmaster.job.errors import ServiceException, TrainmasterError, UserErrorException, WorkspaceException
from trainmaster.job.helper import messages
from trainmaster.shared import json_text
from trainmaster.shared.dispatcher_socket import LONGEST_REQUEST
from trainmaster.shared.records import TERMINAL, RunRecord

log = logging.getLogger("trainmaster.dispatch")

T = TypeVar("T")

# The bytes that each connection may use, and those that all longer requests and answers may use together.
_PIECE = 32 * 1024
_ALL = 2 * LONGEST_REQUEST
# A client that pauses this long while it sends a long request or reads a long answer is disconnected.
_STALL_SECONDS = 60.0
# How long a request waits for a database that was restarted, and how long until it is tried again.
_OUTAGE_SECONDS, _AGAIN_SECONDS = 30.0, 0.1
# How the requests begin that a server makes of those of MLflow's clients.
_OF_SERVER = b'{"id":1,"op":"mlflow.answer","args":{'
# How many different internal errors are logged with a traceback, each once.
_FAULTS = 50


class Server:
    """Answers the requests of clients."""

    def __init__(self, operations: Operations, watchers: Watchers) -> None:
        self._operations = operations
        self._watchers = watchers
        self._connections: set[asyncio.Task[Any]] = set()
        self._strangers: set[int] = set()
        self._faults: set[tuple[object, ...]] = set()
        self._room = Room(_ALL)
        self.stopping = asyncio.Event()
        self.lost = asyncio.Event()
        """Set when an operation finds that the connection to the database is lost."""
        self._serving = asyncio.Event()
        self._serving.set()
        self._outage: Exception | None = None
        self.requests = 0
        """How many requests have arrived. A dispatcher with new requests is not idle."""
        self._kept = KeptAnswers(lambda: self._operations.version)

    async def listen(self, path: str) -> asyncio.Server:
        """Start to listen on the unix socket `path`."""
        return await asyncio.start_unix_server(self._serve, path, limit=_PIECE)

    async def suspend(self, outage: Exception | None) -> None:
        """Disconnect all clients. Those that come wait for the database, and at last get the error `outage`."""
        self._serving.clear()
        self._outage = outage
        await self.close()

    def explain(self, outage: Exception) -> None:
        """Replace the error that clients get while there is no database."""
        self._outage = outage

    def resume(self, operations: Operations, watchers: Watchers) -> None:
        """Answer requests again, with other parts."""
        self._operations, self._watchers = operations, watchers
        self._kept = KeptAnswers(lambda: self._operations.version)
        self.lost.clear()
        self._serving.set()

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
            # The rest of the request was not read, so the connection cannot go on.
            with contextlib.suppress(ConnectionError):
                await self._send(writer, messages.failure(answer_error(refused.error), {"id": None}))
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            # The client left or stalled, or the dispatcher ends.
            return
        finally:
            share.give_back()
            self._connections.discard(task)
            writer.close()

    def _is_own(self, writer: asyncio.StreamWriter) -> bool:
        """Whether the client is this user or root. Another user gets no answer, and is logged once."""
        connection = writer.get_extra_info("socket")
        if is_trusted(connection):
            return True
        user = credentials(connection).user
        if user not in self._strangers:
            self._strangers.add(user)
            log.warning("refused user %d: the workspace belongs to user %d", user, os.geteuid())
        return False

    async def _respond(
        self, line: bytes, share: Share, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request, and return whether the connection stays open."""
        request: dict[str, Any] = {}
        op: Any = ""
        kept = self._kept.find(line) if self._serving.is_set() else None
        if kept is not None:
            share.give_back()
            await self._send_text(writer, kept)
            return True
        version, is_kept, lasts = self._operations.version, False, False
        try:
            request = _read_request(line)
            op, args = request.get("op"), request.get("args", {})
            if op == "runs.watch":
                record = await self._call(partial(self._find_watched, args))
                await self._watch(record, reader, writer)
                return False
            if op == "shutdown":
                self.stopping.set()
                result: Any = None
            elif op == "hello":
                # Also without a database.
                result = await self._operations.call(op, args)
            else:
                result = await self._call(partial(self._call_operation, op, args))
                is_kept = self._operations.is_from_store(op, args, result)
                lasts = is_kept or self._operations.is_from_journals(op)
            reply = messages.success(result, request)
            if lasts:
                # A server may keep the answer. The mark stands before the result, where it is found without parsing.
                reply = {"id": reply["id"], "lasts": True, "result": result}
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 (a fault of one operation must not end the dispatcher)
            self._note(op, error)
            reply = messages.failure(answer_error(error), {"id": request.get("id")})
        share.give_back()
        text = _write_reply(reply)
        if is_kept:
            self._kept.keep(line, text, version)
        await self._send_text(writer, text)
        return True

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call. While the connection to the database is lost, it waits: it may be repeated."""
        deadline = time.monotonic() + _OUTAGE_SECONDS
        while True:
            if not self._serving.is_set():
                await self._wait_for_database(deadline)
            try:
                return await call()
            except WorkspaceException as error:
                if not is_lost(error) or time.monotonic() > deadline:
                    raise
            self.lost.set()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _wait_for_database(self, deadline: float) -> None:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._serving.wait()
        except TimeoutError:
            raise self._outage or ServiceException("the dispatcher has no database now") from None

    async def _call_operation(self, op: Any, args: Any) -> Any:
        return await self._operations.call(op, args)

    async def _find_watched(self, args: Any) -> RunRecord:
        return self._operations.get_run(self._operations.read_watch_request(args))

    def _note(self, op: Any, error: Exception) -> None:
        """Log an internal error once, so that repeated requests do not fill the log."""
        if isinstance(error, TrainmasterError | OSError):
            return
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = (str(op)[:60], type(error), place.filename, place.lineno)
        if fault not in self._faults and len(self._faults) < _FAULTS:
            self._faults.add(fault)
            # Without the arguments, which may contain a secret.
            log.error("request %s (logged once)", fault[0], exc_info=error)

    async def _watch(self, record: RunRecord, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send every change of a run until it has ended or the client has left."""
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
        """Send an answer. Raises ConnectionError if the client has left or stalled."""
        await self._send_text(writer, _write_reply(message))

    async def _send_text(self, writer: asyncio.StreamWriter, text: bytes) -> None:
        if len(text) <= _PIECE:
            writer.write(text)
            await _drain(writer)
            return
        share = Share(self._room, 4 * _PIECE, _STALL_SECONDS)
        try:
            # An answer that is longer than the whole room is sent when no other answer uses it.
            await share.grow_to(len(text))
            writer.write(text)
            del text
            await _drain(writer)
        except NoRoomError:
            raise ConnectionAbortedError from None
        finally:
            share.give_back()

    async def close(self) -> None:
        """Close all connections; clients connect to the next dispatcher."""
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


class _RefusedError(Exception):
    """A request that is refused before it was read completely."""

    def __init__(self, error: TrainmasterError) -> None:
        super().__init__(error.headline)
        self.error = error


async def _read_line(reader: asyncio.StreamReader, share: Share) -> bytes:
    """The next request, or nothing if the client has left."""
    pieces: list[bytes] = []
    count = 0
    while True:
        try:
            if not pieces:
                piece = await reader.readuntil(b"\n")
            else:
                # A connection may be idle between requests, but not within a request.
                async with asyncio.timeout(_STALL_SECONDS):
                    piece = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            return b""
        except asyncio.LimitOverrunError as longer:
            piece = await reader.readexactly(longer.consumed)
        count += len(piece)
        if count > LONGEST_REQUEST:
            raise _RefusedError(UserErrorException(f"a request is limited to {LONGEST_REQUEST >> 20} MB"))
        try:
            await share.grow_to(count)
        except NoRoomError:
            raise _RefusedError(
                ServiceException("the dispatcher has no memory for this request now", hint="Try again later.")
            ) from None
        pieces.append(piece)
        if piece.endswith(b"\n"):
            return b"".join(pieces)


def _read_request(line: bytes) -> dict[str, Any]:
    try:
        # What MLflow's clients log is long, and has numbers of 64 bits at most.
        request = json_text.parse(line) if line.startswith(_OF_SERVER) else messages.decode(line)
    except ValueError as error:
        raise UserErrorException("the request is not a JSON object", cause=str(error)[:300]) from None
    return {"id": None, **request}


def _write_reply(reply: dict[str, Any]) -> bytes:
    result = reply.get("result")
    if isinstance(result, JsonText):
        return b'{"id": %s, "result": %s}\n' % (json_text.write(reply["id"]), result)
    return messages.encode(reply) + b"\n"


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Wait until nearly everything is sent. Raises ConnectionAbortedError if the client stalls."""
    left = writer.transport.get_write_buffer_size()
    while left:
        try:
            async with asyncio.timeout(_STALL_SECONDS):
                await writer.drain()
                return
        except TimeoutError:
            before, left = left, writer.transport.get_write_buffer_size()
            if left >= before:
                writer.transport.abort()
                raise ConnectionAbortedError from None
