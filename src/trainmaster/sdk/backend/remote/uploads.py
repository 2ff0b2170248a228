"""Sends files of this machine to the server."""

from __future__ import annotations

import io
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.files import existing_file, is_stream
from trainmaster.sdk.backend.remote.connection import RemoteConnection
from trainmaster.sdk.backend.remote.http import Request, join_path

_BLOCK = 1 << 20
# Streams up to this size are sent from memory.
_IN_MEMORY = 8 << 20


def file_path(connection: RemoteConnection, run_id: str, name: str) -> str:
    """Where a file of a run is on the server."""
    return f"{connection.path}/runs{join_path(run_id)}/files/{quote(name, safe='/')}"


def put_file(
    connection: RemoteConnection,
    run_id: str,
    name: str,
    source: Any,
    *,
    beside: bool = False,
    patience: float | None = None,
) -> str:
    """Keeps a file, or the contents of a stream, as `name`; returns the name it got."""
    put = partial(_put, connection, run_id, name, beside=beside, patience=patience)
    if is_stream(source):
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
            while block := source.read(_BLOCK):
                copy.write(block if isinstance(block, bytes) else str(block).encode())
            size = copy.tell()
            return put(lambda: _Rewound(copy), size)
    path = Path(existing_file(source))
    return put(lambda: open_file(path), os.stat(path).st_size)


def _put(
    connection: RemoteConnection,
    run_id: str,
    name: str,
    body: Any,
    size: int,
    *,
    beside: bool,
    patience: float | None,
) -> str:
    request = Request(
        "PUT",
        file_path(connection, run_id, name),
        {"beside": "true" if beside else None},
        {"Content-Type": "application/octet-stream", "Accept": "application/json"},
        body,
        size,
        patience=patience,
    )
    return str(connection.client.request(request).json()["name"])


def open_file(path: Path) -> IO[bytes]:
    """A file to send."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise UserErrorException(f"{path} cannot be read", cause=error.strerror or str(error)) from None


class _Rewound(io.RawIOBase):
    """A copy of a stream, read from its beginning for every attempt. Closing it keeps the copy."""

    def __init__(self, copy: Any) -> None:
        self._copy = copy
        copy.seek(0)

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._copy.read(size)
        return data
