"""The connection. Both sides send frames: a line of JSON, followed by as many bytes as its `size` says."""

import os
import select

from . import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from .messages import Message

    Header = Message

GREETING = b"trainmaster ferry 1\n"
PIECE = 256 * 1024


class Disconnected(Exception):
    """The other end of the connection is gone."""


class Connection(object):
    """Frames in, frames out."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._held = b""
        self._rest = 0

    def send(self, header: "Header", payload: bytes = b"") -> None:
        """Sends one frame. Raises Disconnected."""
        if payload:
            header = dict(header, size=len(payload))
        self.write(messages.encode(header) + b"\n" + payload)

    def write(self, data: bytes) -> None:
        """Sends bytes unchanged. Raises Disconnected."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._sink, view) :]
            except OSError:
                raise Disconnected() from None

    def has_input(self, seconds: float, *others: int) -> bool:
        """Waits up to `seconds`, or until one of the `others` is readable; returns whether a frame has arrived."""
        if self._held:
            return True
        return self._source in select.select([self._source, *others], [], [], seconds)[0]

    def header(self) -> "Header":
        """The line of the next frame; `payload` or `pieces` return its bytes. Raises Disconnected."""
        while b"\n" not in self._held:
            self._held += self._read()
        line, _, self._held = self._held.partition(b"\n")
        header = messages.decode(line)
        self._rest = header.get("size", 0)
        return header

    def payload(self) -> bytes:
        """The rest of the frame's bytes."""
        return b"".join(self.pieces())

    def pieces(self) -> "Iterator[bytes]":
        """The rest of the frame's bytes, piece by piece."""
        while self._rest:
            data = self._held or self._read()
            piece, self._held = data[: self._rest], data[self._rest :]
            self._rest -= len(piece)
            yield piece

    def _read(self) -> bytes:
        data = os.read(self._source, PIECE)
        if not data:
            raise Disconnected()
        return data
