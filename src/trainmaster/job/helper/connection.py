"""The connection. Both sides speak in frames: a line of JSON, and after it as many bytes as its `size` says."""

import json
import os
import select

GREETING = b"trainmaster ferry 1\n"
PIECE = 256 * 1024


class Disconnected(Exception):
    """Nobody is at the other end any more."""


class Connection(object):
    """The connection: frames in, frames out."""

    def __init__(self, source, sink):
        self._source = source
        self._sink = sink
        self._held = b""
        self._rest = 0

    def send(self, header, payload=b""):
        """One frame."""
        if payload:
            header = dict(header, size=len(payload))
        self.write(json.dumps(header).encode("ascii") + b"\n" + payload)

    def write(self, data):
        """Bytes as they are."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._sink, view) :]
            except OSError:
                raise Disconnected() from None

    def waits(self, seconds, *others):
        """Whether something has come within so many seconds, or until something came over one of the `others`."""
        if self._held:
            return True
        return self._source in select.select([self._source, *others], [], [], seconds)[0]

    def header(self):
        """The next frame's line; its bytes are for `payload` or `pieces`."""
        while b"\n" not in self._held:
            self._held += self._read()
        line, _, self._held = self._held.partition(b"\n")
        header = json.loads(line.decode("ascii"))
        self._rest = header.get("size", 0)
        return header

    def payload(self):
        return b"".join(self.pieces())

    def pieces(self):
        """The bytes that belong to the frame, those that were not taken yet."""
        while self._rest:
            data = self._held or self._read()
            piece, self._held = data[: self._rest], data[self._rest :]
            self._rest -= len(piece)
            yield piece

    def _read(self):
        data = os.read(self._source, PIECE)
        if not data:
            raise Disconnected()
        return data
