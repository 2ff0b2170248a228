"""Many files as one zip archive that is written while it is sent: neither memory nor disk hold it."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from anyio import to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trainmaster.server.files.listing import FileEntry
from trainmaster.server.files.opening import NotBeneathError
from trainmaster.server.files.sending import SAFE_HEADERS, Read, disposition, send_in_time

_PIECE = 1 << 20
# Most outputs are compressed already; the lowest level costs little and helps texts.
_LEVEL = 1

Open = Callable[[str], AbstractContextManager[Read]]
"""Opens a file by its name for reading as clients may see it. Raises NotBeneathError."""


class _Pipe(io.RawIOBase):
    """What the archive was written to since the last time. It cannot be sought in."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> bytes:
        """The bytes that were not taken yet."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def write_archive(entries: Sequence[FileEntry], open_file: Open) -> Iterator[bytes]:
    """The archive in pieces. A file that has vanished meanwhile is left out; one that grows is cut at its old size."""
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for entry in entries:
            try:
                with open_file(entry.name) as read:
                    yield from _write_file(archive, pipe, entry, read)
            except NotBeneathError:
                continue
    yield pipe.take()


def _write_file(archive: zipfile.ZipFile, pipe: _Pipe, entry: FileEntry, read: Read) -> Iterator[bytes]:
    info = zipfile.ZipInfo(entry.name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    with archive.open(info, "w", force_zip64=True) as packed:
        place = 0
        while place < entry.size and (piece := read(place, min(_PIECE, entry.size - place))):
            packed.write(piece)
            place += len(piece)
            yield pipe.take()


class ArchiveAnswer(Response):
    """An archive, piece by piece as the client takes it."""

    def __init__(self, name: str, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.background = None
        self.status_code = 200
        self.init_headers({**SAFE_HEADERS, "Content-Type": "application/zip", "Content-Disposition": disposition(name)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] != "HEAD":
            while (piece := await to_thread.run_sync(next, self._pieces, None)) is not None:
                if piece:
                    await send_in_time(send, {"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
