"""The socket: lines of JSON in, lines of JSON out."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from typing import Any

from trainmaster.dispatch.service import Service, answer_error
from trainmaster.dispatch.yard import Yard, news
from trainmaster.node.peer import credentials, is_trusted
from trainmaster.records import TERMINAL

log = logging.getLogger("trainmaster.dispatch")

_LONGEST_REQUEST = 64 * 1024 * 1024


class Server:
    """Serves clients until it is told to stop."""

    def __init__(self, yard: Yard, service: Service) -> None:
        self._yard = yard
        self._service = service
        self._connections: set[asyncio.Task[Any]] = set()
        self._strangers: set[int] = set()
        self.stopping = asyncio.Event()
        self.requests = 0
        """How many were answered: the sign of life for the idle clock."""

    async def listen(self, path: str) -> asyncio.Server:
        """Begins to listen on the unix socket `path`."""
        return await asyncio.start_unix_server(self._serve, path, limit=_LONGEST_REQUEST)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_own(writer):
            writer.close()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while line := await reader.readline():
                self.requests += 1
                if not await self._respond(line, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ValueError):
            # A client that went away, spoke a line beyond all measure, or a dispatcher that ends.
            return
        finally:
            self._connections.discard(task)
            writer.close()

    def _is_own(self, writer: asyncio.StreamWriter) -> bool:
        """Whether a client is this user (or root). Another one is told nothing, and logged once."""
        connection = writer.get_extra_info("socket")
        if is_trusted(connection):
            return True
        user = credentials(connection)[1]
        if user not in self._strangers:
            self._strangers.add(user)
            log.warning("user %d is refused: the workspace belongs to user %d", user, os.geteuid())
        return False

    async def _respond(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; whether the connection goes on."""
        request: Any = None
        try:
            request = json.loads(line)
            op, args = request["op"], request.get("args", {})
            if op == "runs.watch":
                await self._watch(args["run_id"], reader, writer)
                return False
            if op == "shutdown":
                self.stopping.set()
                result: Any = None
            else:
                result = await self._service.call(op, args)
            reply = {"id": request.get("id"), "result": result}
        except ConnectionError:
            raise
        except Exception as error:
            if not hasattr(error, "to_wire"):
                # What was asked, not with which values: there may be a secret among them.
                log.exception("request %s", request.get("op") if isinstance(request, dict) else "that is no object")
            number = request.get("id") if isinstance(request, dict) else None
            reply = {"id": number, "error": answer_error(error)}
        await _send(writer, reply)
        return True

    async def _watch(self, run_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tells of every change until the run has ended, or the client has left."""
        with self._yard.watched(run_id) as queue:
            record = self._service.get_run(run_id)
            await _send(writer, {"id": 1, "result": news(record)})
            ended = record.status in TERMINAL
            left = asyncio.ensure_future(reader.read(1))
            while not ended and not left.done():
                told = asyncio.ensure_future(queue.get())
                await asyncio.wait({told, left}, return_when=asyncio.FIRST_COMPLETED)
                if not told.done():
                    told.cancel()
                    break
                await _send(writer, {"id": 1, "result": told.result()})
                ended = told.result()["ended"]
            left.cancel()

    async def close(self) -> None:
        """Ends all connections; clients turn to the next dispatcher."""
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


async def _send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\n")
    await writer.drain()
