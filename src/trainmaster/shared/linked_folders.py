"""Files of a folder that may contain links. Links are followed as long as they stay in the folder.

A file is opened first, and then its real path is compared: nobody can exchange it in between.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException
from trainmaster.job.helper.safe_names import inner_parts

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_file(root: Path, name: str) -> IO[bytes]:
    """Opens a file to read it. UserErrorException if it is not in the folder, OSError if it is not there."""
    # Not blocking: a pipe without a writer would wait for ever.
    handle = os.open(root / Path(*_parts(name)), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    file = os.fdopen(handle, "rb")
    try:
        _check(handle, root, name)
    except BaseException:
        file.close()
        raise
    return file


def write_piece(root: Path, name: str, part: str, start: int, data: bytes) -> None:
    """Writes a piece of a new file to `part` beside the place where `name` will be. The piece at 0 has to be the first.

    Writing a piece again is harmless. FileNotFoundError if the first piece was not written, or the file is complete.
    """
    parts = _parts(name)
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (0 if start else os.O_CREAT)
    with _open_folder(root, parts[:-1], name) as folder:
        handle = os.open(part, flags, 0o644, dir_fd=folder)
        try:
            os.pwrite(handle, data, start)
        finally:
            os.close(handle)


def finish_file(root: Path, name: str, part: str, size: int) -> None:
    """Gives `part` its final name, on the disk."""
    parts = _parts(name)
    with _open_folder(root, parts[:-1], name) as folder:
        handle = os.open(part, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.ftruncate(handle, size)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(part, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


@contextlib.contextmanager
def _open_folder(root: Path, parts: list[str], name: str) -> Iterator[int]:
    """The folder of these parts, which is created."""
    durable.make_folder(root)
    here = os.open(root, _FOLDER)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=here)
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
            _check(here, root, name)
        yield here
    finally:
        os.close(here)


def _check(handle: int, root: Path, name: str) -> None:
    real = os.readlink(f"/proc/self/fd/{handle}")
    if not Path(real).is_relative_to(os.path.realpath(root)):
        raise UserErrorException(f"{name[:300]!r} leads out of the folder")


def _parts(name: str) -> list[str]:
    try:
        return inner_parts(name)
    except ValueError:
        raise UserErrorException(f"{str(name)[:300]!r} is not a path in the folder") from None
