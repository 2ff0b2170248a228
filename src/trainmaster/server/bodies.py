"""Reading the body of a request within limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope

from trainmaster.server.errors import HttpError, refuse


class LimitedRequest(Request):
    """A request whose body is read within limits, and at once if it is short, as most are."""

    def __init__(self, scope: Scope, body: LimitedBody) -> None:
        super().__init__(scope, body.receive)
        self._limited = body
        self._whole: bytes | None = None

    async def body(self) -> bytes:
        """The whole body; the same if it is asked for again."""
        if self._whole is None:
            self._whole = await self._limited.read()
        return self._whole


class LimitedBody:
    """The body of one request: refused if it is longer than allowed, or if the client stalls."""

    def __init__(self, receive: Receive, largest: int, seconds: float) -> None:
        self._receive = receive
        self._largest = largest
        self._seconds = seconds
        self._count = 0
        self.is_complete = False

    async def read(self) -> bytes:
        """All of it. Raises ClientDisconnect if the client leaves before."""
        pieces: list[bytes] = []
        while not self.is_complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            pieces.append(message.get("body", b""))
        return b"".join(pieces)

    async def receive(self) -> Message:
        """The next part, as ASGI gives it."""
        if self.is_complete:
            # Only the end of the connection can follow.
            return await self._receive()
        try:
            async with asyncio.timeout(self._seconds):
                message = await self._receive()
        except TimeoutError:
            raise refuse(
                408, f"nothing of the request's body arrived for {self._seconds:.0f} s", Connection="close"
            ) from None
        if message["type"] == "http.request":
            self._count += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
            if self._count > self._largest:
                raise _too_large(self._largest)
        return message


def check_length(request: Request, largest: int) -> None:
    """Refuse a body that announces too much, before any of it is read."""
    length = request.headers.get("content-length")
    if length is None:
        return
    if not (length.isascii() and length.isdigit()):
        raise refuse(400, "Content-Length is not a number", Connection="close")
    if len(length) > 18 or int(length) > largest:
        raise _too_large(largest)


def _too_large(largest: int) -> HttpError:
    size = f"{largest >> 20} MB" if largest >= 1 << 20 else f"{largest} bytes"
    # The rest of the body is not read, so the connection cannot go on.
    return refuse(413, "the body of the request is too large", cause=f"The limit is {size}.", Connection="close")


def check_type(request: Request) -> None:
    """Refuse a body that does not claim to be JSON. Forms of other sites cannot send such a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise refuse(415, "the body must be JSON", hint="Send the header Content-Type: application/json.")


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = _parse_leniently(body)
    if not isinstance(found, dict):
        raise refuse(400, "the body must be a JSON object")
    return found


def _parse_leniently(body: bytes) -> Any:
    """What Python writes beyond JSON, such as NaN."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise refuse(400, "the body is not JSON", cause=str(error)[:200]) from None
