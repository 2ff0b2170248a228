"""Answers that take long: files, and streams of events. A client that stops reading is dropped."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from trainmaster.job.errors import TrainmasterError
from trainmaster.server.files.ranges import Span, UnsatisfiableRangeError, parse_range

HEARTBEAT_SECONDS = 15.0
# A client that takes nothing for so long is gone, or wants to hold memory.
_PATIENCE_SECONDS = 60.0
_PIECE = 1 << 20
# Whatever a file says of itself, a browser neither guesses its type nor runs anything in it.
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}

SAFE_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
"""The same, as they are sent."""

Read = Callable[[int, int], bytes]
"""Takes a start and a size, and returns that part of a file or less of it; called in a thread."""


@dataclass(frozen=True)
class FileFacts:
    """What a client learns about a file before its contents."""

    name: str
    size: int
    modified_at: float | None = None
    identity: str = ""
    grows: bool = False
    """Whether bytes are only added to it, as to a log: a client may go on with a larger one."""

    @property
    def etag(self) -> str:
        """The tag by which a client recognises this state of the file."""
        state = "" if self.grows else f"-{self.size:x}-{int((self.modified_at or 0) * 1e9):x}"
        return f'"{self.identity}{state}"'


def disposition(name: str) -> str:
    """The header that makes a browser save a file under the last part of its name.

    >>> disposition('outputs/a "b".txt')
    "attachment; filename*=UTF-8''a%20%22b%22.txt"
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    return f"attachment; filename*=UTF-8''{quote(last, safe='')}"


class FileAnswer(Response):
    """A file or a part of it, as the header `Range` asks. `close` is called at the end, however it comes."""

    def __init__(
        self,
        facts: FileFacts,
        read: Read,
        close: Callable[[], None],
        headers: Mapping[str, str],
        more: Mapping[str, str] | None = None,
    ) -> None:
        self._facts = facts
        self._read = read
        self._close = close
        self.background = None
        self.status_code, self._span = _choose(headers, facts)
        self.init_headers({**SAFE_HEADERS, **self._describe(), **(more or {})})

    def _describe(self) -> dict[str, str]:
        facts = self._facts
        media_type = mimetypes.guess_type(facts.name)[0] or "application/octet-stream"
        found = {
            "Accept-Ranges": "bytes",
            "Content-Disposition": disposition(facts.name),
            "Content-Type": media_type if self.status_code != 416 else "application/octet-stream",
            "ETag": facts.etag,
            "Content-Length": str(facts.size if self._span is None else self._span.size),
        }
        if facts.modified_at is not None:
            found["Last-Modified"] = formatdate(facts.modified_at, usegmt=True)
        if self.status_code == 206 and self._span is not None:
            found["Content-Range"] = f"bytes {self._span.start}-{self._span.end - 1}/{facts.size}"
        elif self.status_code == 416:
            found["Content-Range"] = f"bytes */{facts.size}"
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            span = self._span if self._span is not None else Span(0, self._facts.size)
            if scope["method"] == "HEAD" or span.size == 0:
                await send({"type": "http.response.body", "body": b""})
            else:
                await self._send_pieces(span, send)
        finally:
            self._close()

    async def _send_pieces(self, span: Span, send: Send) -> None:
        piece = await self._read_piece(span)
        place = span.start
        while True:
            place += len(piece)
            if not piece:
                # The file became shorter. Without the rest the client sees that the answer is incomplete.
                raise ClientDisconnect
            rest = Span(place, span.end)
            if rest.size <= 0:
                await send_in_time(send, {"type": "http.response.body", "body": piece})
                return
            # The next piece is read while this one is sent.
            message: Message = {"type": "http.response.body", "body": piece, "more_body": True}
            piece, _ = await asyncio.gather(self._read_piece(rest), send_in_time(send, message))

    async def _read_piece(self, span: Span) -> bytes:
        return await to_thread.run_sync(partial(self._read, span.start, min(_PIECE, span.size)))


def _choose(headers: Mapping[str, str], facts: FileFacts) -> tuple[int, Span | None]:
    """The status of the answer, and the part to send; None for the whole file."""
    if headers.get("if-match", "*") not in ("*", facts.etag):
        return 412, Span(0, 0)
    try:
        span = parse_range(_range_of(headers, facts), facts.size)
    except UnsatisfiableRangeError:
        return 416, Span(0, 0)
    return 200 if span is None else 206, span


def _range_of(headers: Mapping[str, str], facts: FileFacts) -> str | None:
    """The header `Range`, unless `If-Range` says that the client has a part of another state of the file."""
    condition = headers.get("if-range")
    return headers.get("range") if condition in (None, facts.etag) else None


async def send_in_time(send: Send, message: Message, seconds: float = _PATIENCE_SECONDS) -> None:
    """Send a part of an answer; drop the connection if the client does not read it."""
    try:
        async with asyncio.timeout(seconds):
            await send(message)
    except TimeoutError:
        raise ClientDisconnect from None


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    kind: str
    data: Any
    """Sent as JSON, so that it is always one line."""
    id: str = ""

    def encode(self) -> bytes:
        """The event as it is sent."""
        text = json.dumps(self.data, separators=(",", ":"))
        start = f"id: {self.id}\n" if self.id else ""
        return f"{start}event: {self.kind}\ndata: {text}\n\n".encode("ascii")


_HEARTBEAT = b": still here\n\n"
# When the stream ends, because its run or the server does, browsers connect again after a second.
_BEGINNING = b"retry: 1000\n\n"


class EventStream(Response):
    """Sends events as they come, and a comment when there is none for a while, so that proxies keep the connection.

    Only one event is held at a time: the next one is asked for when the client has taken the last one.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[Event], heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._events = events
        self._heartbeat_seconds = heartbeat_seconds
        self.status_code = 200
        self.background = None
        # Proxies must not collect events before they pass them on.
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        # The client sees at once that it is connected.
        await _send_text(send, _HEARTBEAT + _BEGINNING)
        try:
            await self._send_events(send)
        finally:
            await self._events.aclose()
        await send({"type": "http.response.body", "body": b""})

    async def _send_events(self, send: Send) -> None:
        coming: asyncio.Future[Event] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(self._events))
                done, _ = await asyncio.wait({coming}, timeout=self._heartbeat_seconds)
                if not done:
                    await _send_text(send, _HEARTBEAT)
                    continue
                try:
                    event = coming.result()
                except StopAsyncIteration:
                    return
                except TrainmasterError as error:
                    await _send_text(send, Event("error", error.to_wire()).encode())
                    return
                coming = None
                await _send_text(send, event.encode())
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)


async def _send_text(send: Send, text: bytes) -> None:
    await send_in_time(send, {"type": "http.response.body", "body": text, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
