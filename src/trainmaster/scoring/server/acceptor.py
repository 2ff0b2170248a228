"""Accepts connections from the listening socket that all replicas share, and limits what one connection may do."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from email.utils import formatdate
from time import monotonic
from typing import Any, Dict, Tuple, Type

import uvicorn
from uvicorn.server import ServerState

from . import numbers as places
from .application import Application

KEEP_ALIVE_SECONDS = 10
_HEAD_BYTES = 256 * 1024
# How long a replica with more connections than another waits for that one to accept the next.
_PATIENCE_SECONDS = 0.002
_NO_HANDLES_SECONDS = 0.2


class Acceptor:
    """Accepts connections while open, and speaks HTTP on them (uvicorn's protocol) for the app."""

    def __init__(self, application: Application, listening: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._numbers = application.numbers
        self._mine = application.numbers.mine
        self._limit = application.settings.seconds
        self._listening = listening
        self._loop = loop
        self._open = False
        self._waited = False
        self._config = uvicorn.Config(
            application,
            http=_http(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        self._config.load()
        self._state = ServerState()
        self._protocol = _limit_connections(self._config.http_protocol_class, application)
        self._opening: "set[asyncio.Task[Any]]" = set()
        self._quiet: Dict[Any, Tuple[int, float]] = {}

    def open(self) -> None:
        """Start accepting connections."""
        self._open = True
        self._mine[places.READY] = 1.0
        self._loop.add_reader(self._listening, self._accept)
        self._every_second()

    def close(self) -> None:
        """Stop accepting connections; existing ones stay."""
        self._open = False
        self._mine[places.READY] = 0.0
        self._loop.remove_reader(self._listening)

    def close_connections(self) -> None:
        """Close idle connections at once, and the others after their answer."""
        for connection in list(self._state.connections):
            connection.shutdown()

    @property
    def is_empty(self) -> bool:
        """Whether all connections are closed."""
        return not (self._state.connections or self._state.tasks or self._opening)

    def _accept(self) -> None:
        if not self._waited and self._mine[places.CONNECTIONS] > self._numbers.fewest_connections():
            self._wait(_PATIENCE_SECONDS)
            return
        self._waited = False
        try:
            # Accept only one: the other replicas are woken for the next one too.
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another replica was faster
        except OSError:
            self._wait(_NO_HANDLES_SECONDS)
            return
        self.take_connection(connection)

    def take_connection(self, connection: socket.socket) -> None:
        """Speak HTTP on an accepted connection."""
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._speak_http(connection))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._loop.call_later(seconds, self._look_again)

    def _look_again(self) -> None:
        if self._open:
            self._waited = True
            self._loop.add_reader(self._listening, self._accept)

    async def _speak_http(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol_for_one, connection)
        except OSError:
            connection.close()  # the client has already disconnected

    def _protocol_for_one(self) -> Any:
        return self._protocol(config=self._config, server_state=self._state, app_state={}, _loop=self._loop)

    def _every_second(self) -> None:
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode("ascii"))]
        self._end_silent_connections()
        self._loop.call_later(1.0, self._every_second)

    def _end_silent_connections(self) -> None:
        """Close connections that send no headers, or send them too slowly: uvicorn would wait forever."""
        now = monotonic()
        quiet: Dict[Any, Tuple[int, float]] = {}
        for connection in list(self._state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                continue
            number, since = self._quiet.get(connection, (id(cycle), now))
            quiet[connection] = (id(cycle), since if number == id(cycle) else now)
            if now - quiet[connection][1] > max(self._limit, KEEP_ALIVE_SECONDS):
                connection.transport.close()
        self._quiet = quiet


def _http() -> Any:
    # Explicit, because "auto" differs between uvicorn's releases.
    return "h11" if importlib.util.find_spec("httptools") is None else "httptools"


def _limit_connections(kind: Type[Any], application: Application) -> Type[Any]:
    """Extend the protocol: count its connections, and limit the size of headers."""
    mine = application.numbers.mine

    class Limited(kind):  # type: ignore[misc]
        _head = 0

        def connection_made(self, transport: Any) -> None:
            mine[places.CONNECTIONS] += 1.0
            super().connection_made(transport)

        def connection_lost(self, exc: Any) -> None:
            mine[places.CONNECTIONS] -= 1.0
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._head = 0
            elif self._head > _HEAD_BYTES:
                self.transport.close()
                return
            else:
                self._head += len(data)
            super().data_received(data)
            if self.cycle is not None:
                self._head = 0

    return Limited
