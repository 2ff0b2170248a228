"""One HTTP/1.1 connection to an API server, and the pool of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from trainmaster.engines.kubernetes.access import Access, Headers
from trainmaster.engines.kubernetes.api_errors import missing_package
from trainmaster.engines.kubernetes.proxies import connect_through, find_proxy, keep_alive

try:
    import httptools
except ImportError as error:
    raise missing_package(error) from error

CONNECT_SECONDS = 10.0
_PIECE = 64 * 1024
# Shorter than the idle timeouts of API servers and of load balancers in front of them.
_IDLE_SECONDS = 30.0


class Response:
    """What the server answers; its body is read piece by piece."""

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.rest = b""
        """What followed the headers of an answer that changes the protocol."""
        self.is_complete = False
        self.can_continue = False
        """Whether the connection can be used again after this answer."""
        self._has_headers = False
        self._pieces: list[bytes] = []
        self._connection = connection
        self._parser = httptools.HttpResponseParser(self)

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives."""
        while True:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                yield piece
            if self.is_complete:
                return
            if not pieces:
                await self._receive()

    async def receive_headers(self) -> None:
        """Waits for the status and the headers."""
        while not self._has_headers:
            await self._receive()

    async def _receive(self) -> None:
        data = await self._connection.reader.read(_PIECE)
        if not data:
            self._end()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.rest = data[upgrade.args[0] :]
            self.is_complete = True
        except httptools.HttpParserError as error:
            raise ConnectionError(f"the answer is not HTTP: {error}") from None

    def _end(self) -> None:
        """The connection was closed. That is the end of a body only if nothing else says where it ends."""
        lengths = {"content-length", "transfer-encoding"}
        if not self._has_headers:
            raise ConnectionResetError("the connection was closed without an answer")
        if not self.is_complete and lengths & self.headers.keys():
            raise ConnectionResetError("the connection was closed in the middle of an answer")
        self.is_complete = True
        self.can_continue = False

    # The parser calls these.

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200 or self.status == 101:
            self._has_headers = True
        else:
            self.headers.clear()

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        if self._has_headers:
            self.is_complete = True
            self.can_continue = self._parser.should_keep_alive()


class LineReader:
    """The lines of a body that has no end."""

    def __init__(self, response: Response, limit: int) -> None:
        self._pieces = response.pieces()
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._size = 0

    async def read(self) -> bytes:
        """The next line that is not empty, without its end; nothing at the end of the body. Half a line is dropped."""
        while not self._lines:
            piece = await anext(self._pieces, None)
            if piece is None:
                return b""
            self._add(piece)
        return self._lines.popleft()

    def _add(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        self._rest.append(first)
        self._size += len(first)
        if self._size > self._limit:
            raise ConnectionError(f"a line is longer than {self._limit} bytes")
        for other in others:
            if line := b"".join(self._rest):
                self._lines.append(line)
            self._rest, self._size = [other], len(other)


class Connection:
    """A connection that carries one request after the other."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext | None, prefix: str
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.context = context
        self.used_at = time.monotonic()
        self.response: Response | None = None
        """The answer to the last request."""
        self._prefix = prefix
        """The path of the server's address, which begins the target of every request."""

    async def request(self, method: str, target: str, headers: Headers, body: bytes = b"") -> Response:
        """Sends a request and waits for the headers of the answer."""
        if " " in target or not target.isprintable():
            raise ValueError(f"{target!r} is not a path")
        lines = [f"{method} {self._prefix}{target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body)}")
        response = self.response = Response(self)
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()
        await response.receive_headers()
        return response

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        is_open = not self.reader.at_eof() and self.reader.exception() is None and not self.writer.is_closing()
        return is_open and time.monotonic() - self.used_at < _IDLE_SECONDS

    def abort(self) -> None:
        """Closes the connection at once."""
        self.writer.transport.abort()


class ConnectionPool:
    """Connections to one API server. Idle ones are used again; those of requests are limited in number."""

    def __init__(self, access: Access, limit: int) -> None:
        self._access = access
        self._turns = asyncio.Semaphore(limit)
        self._idle: list[Connection] = []
        self._in_use: set[Connection] = set()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Connection]:
        """A connection for one request and its whole answer, which the caller reads."""
        async with self._turns:
            context = await self._access.ssl_context()
            connection = self._take(context) or await open_connection(self._access, context)
            self._in_use.add(connection)
            try:
                yield connection
            finally:
                self._in_use.discard(connection)
                self._put_back(connection)

    @contextlib.asynccontextmanager
    async def own(self) -> AsyncIterator[Connection]:
        """A connection for an answer that takes long. It does not count."""
        connection = await open_connection(self._access, await self._access.ssl_context())
        self._in_use.add(connection)
        try:
            yield connection
        finally:
            self._in_use.discard(connection)
            connection.abort()

    def drop_idle(self) -> None:
        """Closes the connections that nobody uses."""
        while self._idle:
            self._idle.pop().abort()

    async def close(self) -> None:
        """Closes all connections."""
        self.drop_idle()
        for connection in tuple(self._in_use):
            connection.abort()
        # asyncio closes the sockets in its next round.
        await asyncio.sleep(0)

    def _put_back(self, connection: Connection) -> None:
        last = connection.response
        if last is not None and last.is_complete and last.can_continue:
            connection.used_at = time.monotonic()
            self._idle.append(connection)
        else:
            connection.abort()

    def _take(self, context: ssl.SSLContext | None) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.context is context and connection.is_usable:
                return connection
            connection.abort()
        return None


async def open_connection(
    access: Access, context: ssl.SSLContext | None, seconds: float = CONNECT_SECONDS
) -> Connection:
    """Connects, through a proxy if there is one. Raises OSError, also for TLS that fails."""
    server = urlsplit(access.server)
    host, port = server.hostname or "", server.port or (443 if server.scheme == "https" else 80)
    name = (access.cluster.tls_server_name or host) if context else None
    proxy = access.cluster.proxy_url or find_proxy(access.server, os.environ)
    async with asyncio.timeout(seconds):
        if proxy:
            reader, writer = await _open_through(proxy, host, port, context, name)
        else:
            reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=name, limit=_PIECE)
    keep_alive(writer)
    return Connection(reader, writer, context, server.path.rstrip("/"))


async def _open_through(
    address: str, host: str, port: int, context: ssl.SSLContext | None, name: str | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    proxy = urlsplit(address)
    default_port = {"https": 443, "socks5": 1080}.get(proxy.scheme, 80)
    outer = ssl.create_default_context() if proxy.scheme == "https" else None
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port or default_port, ssl=outer, limit=_PIECE)
    try:
        await connect_through(proxy, reader, writer, host, port)
        if context:
            await writer.start_tls(context, server_hostname=name)
    except asyncio.IncompleteReadError:
        writer.transport.abort()
        raise ConnectionError(f"the proxy {proxy.hostname} closed the connection") from None
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


def host_header(access: Access) -> str:
    """The value of the Host header."""
    return urlsplit(access.server).netloc.rpartition("@")[2]
