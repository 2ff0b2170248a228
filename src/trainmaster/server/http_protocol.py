"""Connections of clients, with limits that uvicorn does not have: on headers, and on clients that stall."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 * 1024
"""Bytes of the request line and all headers."""

_LARGEST_PIECE = 64 * 1024
_NO_LINGERING = struct.pack("ii", 1, 0)
_REFUSAL = "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.headers_since: float | None = None
        """Since when the headers of a request are awaited; None while there is a complete request."""
        self.stalled_since: float | None = None
        """Since when the client does not read what is sent to it."""
        self._head_size = 0
        self._answer: JoinedWrites | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.headers_since = time.monotonic()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.headers_since is None:
            self._head_size = 0
            return
        self._head_size += len(data)
        if self._head_size > LARGEST_HEAD:
            self.refuse("431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        self.headers_since = time.monotonic()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.headers_since = None
        super().on_headers_complete()
        self._answer = self.cycle.transport = JoinedWrites(self.transport, self.loop)  # type: ignore[assignment]

    def shutdown(self) -> None:
        if self._answer is not None:
            self._answer.flush()
        super().shutdown()

    def pause_writing(self) -> None:
        self.stalled_since = time.monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        self.stalled_since = None
        super().resume_writing()

    def refuse(self, status: str) -> None:
        """Answer without a request, and close the connection."""
        if not self.transport.is_closing():
            self.transport.write(_REFUSAL.format(status=status).encode())
            self.transport.close()

    def drop(self) -> None:
        """End the connection at once. The system does not keep what the client has not read, as it does else."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.transport.abort()


class JoinedWrites:
    """A connection as an answer sees it: what is written in one step, as head and body are, is sent at once.

    Each write is a system call, and wakes the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send `data` after what was written before, at the end of this step at the latest."""
        if len(data) > _LARGEST_PIECE:
            self.flush()
            self._transport.write(data)
            return
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)

    def flush(self) -> None:
        """Send what was written."""
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self._transport.is_closing()

    def close(self) -> None:
        """End the connection when everything is sent."""
        self.flush()
        self._transport.close()


def close_slow(connections: Iterable[Any], now: float, header_seconds: float, stall_seconds: float) -> None:
    """Close the connections of clients that take too long to send headers, or do not read their answer."""
    for each in list(connections):
        if not isinstance(each, LimitedProtocol):
            continue
        if each.headers_since is not None and now - each.headers_since > header_seconds:
            each.refuse("408 Request Timeout")
        elif each.stalled_since is not None and now - each.stalled_since > stall_seconds:
            each.drop()
