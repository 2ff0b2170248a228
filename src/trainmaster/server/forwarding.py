"""Passing a request on to another server, with the caller's own credentials: that server checks them again.

Bodies of requests and answers are passed on piece by piece, so streams of events work as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import h11
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from trainmaster.job.errors import ServiceException
from trainmaster.server.errors import refuse

MARK = "x-trainmaster-forwarded"
"""A request with this header is not passed on again."""

_CONNECT_SECONDS = 5.0
_PIECE = 64 * 1024
# Of one connection, not of the request; the rest is set by this server or the other one.
_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "expect", "x-request-id", MARK),
    }
)


async def forward(request: Request, server: str, request_id: str) -> Response:
    """The answer of another server to this request. Raises HttpError if it does not answer."""
    if MARK in request.headers:
        raise ServiceException(
            "the servers do not agree on where the dispatcher of the workspace is", hint="Try again in a few seconds."
        )
    line = _Line(server)
    try:
        await line.open()
        await line.send(_make_request(request, server, request_id))
        if _has_body(request):
            async for piece in request.stream():
                if piece:
                    await line.send(h11.Data(data=piece))
        await line.send(h11.EndOfMessage())
        head = await line.receive()
        while isinstance(head, h11.InformationalResponse):
            head = await line.receive()
        if not isinstance(head, h11.Response):
            raise ConnectionError("the other server closed the connection")
    except (OSError, TimeoutError, h11.RemoteProtocolError):
        line.close()
        raise refuse(
            503,
            "the server that has the dispatcher of the workspace does not answer",
            hint="Try again: within seconds this server takes over if the other one has failed.",
            Retry_After="2",
        ) from None
    except BaseException:
        line.close()
        raise
    answer = StreamingResponse(line.stream(), head.status_code)
    answer.raw_headers = [(name, value) for name, value in head.headers if name.decode() not in _HOP]
    return answer


def _make_request(request: Request, server: str, request_id: str) -> h11.Request:
    query = request.scope["query_string"]
    headers = [(name, value) for name, value in request.headers.raw if name.decode("latin-1").lower() not in _HOP]
    if _has_body(request) and "content-length" not in request.headers:
        headers.append((b"transfer-encoding", b"chunked"))
    headers += [
        (b"host", urlsplit(server).netloc.encode()),
        (b"connection", b"close"),
        (b"x-request-id", request_id.encode()),
        (MARK.encode(), b"1"),
    ]
    target = request.scope["raw_path"] + (b"?" + query if query else b"")
    return h11.Request(method=request.method, target=target, headers=headers)


def _has_body(request: Request) -> bool:
    return "content-length" in request.headers or "transfer-encoding" in request.headers


class _Line:
    """One connection to another server, for one request."""

    def __init__(self, server: str) -> None:
        self._address = urlsplit(server)
        self._protocol = h11.Connection(h11.CLIENT)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        secure = self._address.scheme == "https"
        async with asyncio.timeout(_CONNECT_SECONDS):
            self._reader, self._writer = await asyncio.open_connection(
                self._address.hostname,
                self._address.port or (443 if secure else 80),
                ssl=ssl.create_default_context() if secure else None,
            )

    async def send(self, event: h11.Event) -> None:
        assert self._writer is not None
        data = self._protocol.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def receive(self) -> object:
        assert self._reader is not None
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            self._protocol.receive_data(await self._reader.read(_PIECE))
        return event

    async def stream(self) -> AsyncIterator[bytes]:
        """The body of the answer. If the other server dies, the answer ends without its end."""
        try:
            while isinstance(event := await self.receive(), h11.Data):
                yield bytes(event.data)
        finally:
            self.close()

    def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._writer.close()
