"""Changing what lies in a folder, without ever leaving it.

The folder is opened, and every part of a name is looked up in it without following links. So neither a name from
outside nor a link that a script has put there leads anywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from trainmaster.job.errors import UserErrorException
from trainmaster.job.helper.safe_names import inner_parts

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def rename(root: Path, name: str, new_name: str) -> None:
    """Renames `name` to `new_name`, both relative to `root`."""
    source, target = _parts(root, name), _parts(root, new_name)
    with _open_folder(root) as top, _descend(top, source[:-1]) as here, _descend(top, target[:-1]) as there:
        os.rename(source[-1], target[-1], src_dir_fd=here, dst_dir_fd=there)


def write_text(root: Path, name: str, text: str) -> None:
    """Write a file: a reader finds the old one or the new one. A link with that name is replaced, not followed."""
    parts = _parts(root, name)
    temporary = f".{parts[-1]}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with _open_folder(root) as top, _descend(top, parts[:-1]) as here:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=here)
        with open(os.open(temporary, flags, 0o644, dir_fd=here), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(temporary, parts[-1], src_dir_fd=here, dst_dir_fd=here)


def is_folder(root: Path, name: str) -> bool:
    """Whether `name` is a folder in `root`. A link to a folder does not count."""
    try:
        with _open_folder(root) as top, _descend(top, _parts(root, name)):
            return True
    except OSError:
        return False


def list_folder(root: Path, name: str) -> list[tuple[str, int | None]]:
    """What is in a folder in `root` (the root itself without a name): names, and the sizes of files. No links."""
    with (
        _open_folder(root) as top,
        _descend(top, _parts(root, name) if name else ()) as here,
        os.scandir(here) as found,
    ):
        return sorted(
            (each.name, None if each.is_dir(follow_symlinks=False) else each.stat(follow_symlinks=False).st_size)
            for each in found
            if not each.is_symlink()
        )


@contextlib.contextmanager
def open_file(root: Path, name: str) -> Iterator[BinaryIO]:
    """A file in `root`, for reading. A link on the way, or anything else than a file, is an OSError."""
    parts = _parts(root, name)
    with _open_folder(root) as top, _descend(top, parts[:-1]) as here:
        handle = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EISDIR, "not a file")
        yield file


def remove_tree(root: Path, name: str, left: list[str] | None = None) -> int:
    """Removes `name` in `root` with all below it; the bytes that are free now.

    What cannot be removed stays, and is added to `left` with the reason.
    """
    kept = left if left is not None else []
    parts = _parts(root, name)
    try:
        with _open_folder(root) as top:
            return _remove(top, parts, root, kept)
    except FileNotFoundError:
        return 0
    except OSError as error:
        kept.append(_complaint(root, parts, error))
        return 0


def _parts(root: Path, name: str) -> tuple[str, ...]:
    try:
        return tuple(inner_parts(name))
    except ValueError:
        raise UserErrorException(f"{str(name)[:300]!r} does not lie in {root}") from None


@contextlib.contextmanager
def _open_folder(root: Path) -> Iterator[int]:
    handle = os.open(root, _FOLDER)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _descend(top: int, parts: Sequence[str]) -> Iterator[int]:
    """The folder of these parts, from the open folder `top` on. A link on the way is an OSError."""
    here = os.dup(top)
    try:
        for part in parts:
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _remove(top: int, parts: tuple[str, ...], root: Path, left: list[str]) -> int:
    with _descend(top, parts[:-1]) as above:
        if not stat.S_ISDIR(os.lstat(parts[-1], dir_fd=above).st_mode):
            return _unlink(above, parts[-1])
    freed = 0
    folders: list[tuple[str, ...]] = []
    waiting = [parts]
    while waiting:
        # However deep they lie: only a few folders are open at a time.
        here = waiting.pop()
        folders.append(here)
        try:
            freed += _empty(top, here, waiting, root, left)
        except OSError as error:
            left.append(_complaint(root, here, error))
    for here in reversed(folders):
        try:
            with _descend(top, here[:-1]) as above:
                os.rmdir(here[-1], dir_fd=above)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                left.append(_complaint(root, here, error))
    return freed


def _empty(top: int, parts: tuple[str, ...], waiting: list[tuple[str, ...]], root: Path, left: list[str]) -> int:
    """Removes the files of one folder; the folders in it are added to `waiting`."""
    freed = 0
    with _descend(top, parts[:-1]) as above:
        _unlock(above, parts[-1])
        here = os.open(parts[-1], _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    try:
        for name in os.listdir(here):
            try:
                if stat.S_ISDIR(os.lstat(name, dir_fd=here).st_mode):
                    waiting.append((*parts, name))
                else:
                    freed += _unlink(here, name)
            except OSError as error:
                left.append(_complaint(root, (*parts, name), error))
    finally:
        os.close(here)
    return freed


def _unlock(above: int, name: str) -> None:
    """Scripts may have closed a folder, to themselves too."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        if os.fstat(handle).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            # A handle like this cannot be changed itself.
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)
    finally:
        os.close(handle)


def _unlink(above: int, name: str) -> int:
    """Removes a file; what became free with this name."""
    found = os.lstat(name, dir_fd=above)
    os.unlink(name, dir_fd=above)
    return found.st_blocks * 512 if found.st_nlink == 1 else 0


def _complaint(root: Path, parts: Sequence[str], error: OSError) -> str:
    return f"{root.joinpath(*parts)}: {error.strerror}"
