"""Files that clients read in pieces, as base64."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.shared import linked_folders

LARGEST_PIECE = 8 << 20


def read_piece(folder: Path, path: str, start: int, size: int, where: str) -> dict[str, Any]:
    """A piece of a file in `folder`: `{"data", "size"}`, base64 and the size of the whole file."""
    if start < 0 or not 0 < size <= LARGEST_PIECE:
        raise UserErrorException(f"a piece of a file has 1 to {LARGEST_PIECE} bytes and starts at 0 or later")
    try:
        with linked_folders.open_file(folder, path) as file:
            whole = os.fstat(file.fileno()).st_size
            file.seek(start)
            return as_piece(file.read(size), whole)
    except OSError as error:
        raise DatastoreException(
            f"{path[:300]!r} cannot be read from {where}", cause=error.strerror or str(error)
        ) from None


def as_piece(data: bytes, size: int) -> dict[str, Any]:
    """The answer with a piece of a file that has `size` bytes."""
    return {"data": base64.b64encode(data).decode(), "size": size}
