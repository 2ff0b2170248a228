"""Opens files beneath a folder for clients: neither a name nor a link leads out of it.

The server may run as another account than the jobs whose files it reads, so a link that a job creates must not show
what only the server may read. A file is opened without reading it (`O_PATH`), then the kernel says where it really is,
and only then it is opened for reading. A link that changes in between makes no difference.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import stat
from collections.abc import Iterator, Sequence

from trainmaster.job.helper.safe_names import inner_parts

_LOOK = os.O_PATH | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LONGEST_PATH = 1024
LONGEST_PART = 255


class NotBeneathError(Exception):
    """There is no such file, or it is outside of the folder. Clients cannot tell which."""


class OpenFile:
    """An open regular file. Whoever gets it closes it."""

    def __init__(self, handle: int, path: str, found: os.stat_result) -> None:
        self._file = io.FileIO(handle)
        self.handle = handle
        self.path = path
        """Where it really is."""
        self.size = found.st_size
        self.modified_at = found.st_mtime
        self.identity = str(found.st_ino)

    def close(self) -> None:
        """Close it; may be repeated."""
        self._file.close()


def split_name(name: str) -> list[str]:
    """The parts of a relative path from a client. Raises NotBeneathError for any other path."""
    try:
        parts = inner_parts(name)
        is_short = len(name) <= LONGEST_PATH and all(len(part.encode("utf-8")) <= LONGEST_PART for part in parts)
    except (ValueError, UnicodeError):
        raise NotBeneathError(name) from None
    if not is_short:
        raise NotBeneathError(name)
    return parts


def split_new_name(name: str) -> list[str]:
    """The parts of a name that a client gives to a new file: no control characters, and no separators of Windows."""
    parts = split_name(name)
    if any(ord(character) < 32 or character in "\\\x7f" for character in name):
        raise NotBeneathError(name)
    return parts


def open_beneath(top: str, name: str, roots: Sequence[str]) -> OpenFile:
    """Open the file `name` in the folder `top`. Links are followed as long as the file lies in one of `roots`.

    `top` and `roots` are real paths: no part of them may be a link.
    """
    path = os.path.join(top, *split_name(name))
    try:
        looked = os.open(path, _LOOK)
    except (OSError, ValueError):
        raise NotBeneathError(name) from None
    try:
        found = os.fstat(looked)
        real = os.readlink(f"/proc/self/fd/{looked}")
        if not stat.S_ISREG(found.st_mode) or not any(is_inside(real, root) for root in roots):
            raise NotBeneathError(name)
        handle = os.open(f"/proc/self/fd/{looked}", _READ)
    except OSError:
        raise NotBeneathError(name) from None
    finally:
        os.close(looked)
    return OpenFile(handle, real, found)


def is_inside(path: str, root: str) -> bool:
    """Whether `path` is below `root`, both without links.

    >>> is_inside("/a/b/c", "/a/b"), is_inside("/a/bc", "/a/b"), is_inside("/a/b", "/a/b")
    (True, False, False)
    """
    return path.startswith(root.rstrip("/") + "/")


@contextlib.contextmanager
def enter_folder(top: str, parts: Sequence[str], new: Sequence[str] = ()) -> Iterator[int]:
    """The open folder of these parts below `top`, then of the `new` ones, which are created if they are missing.

    No part may be a link.
    """
    here = -1
    try:
        here = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for number, part in enumerate((*parts, *new)):
            if number >= len(parts):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=here)
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG):
            raise NotBeneathError("/".join((*parts, *new))) from None
        raise
    finally:
        if here >= 0:
            os.close(here)


def remove_entry(folder: int, name: str) -> None:
    """Remove a file, a link or a folder with all it contains from an open folder; it may be missing."""
    try:
        is_folder = stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        if is_folder:
            # It never follows a link, also if one takes the place of a folder meanwhile.
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def create_file(folder: int, name: str, mode: int = 0o644) -> int:
    """Create the new file `name` in an open folder, for reading and writing."""
    return os.open(name, _NEW, mode, dir_fd=folder)
