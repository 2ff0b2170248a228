"""Files that survive a power cut: they are on the disk before anything is reported as done.

Each file is flushed separately, several at a time, so that the file system commits its journal once for all of them.
Syncing the whole file system would be faster for many files, but also waits for the writes of other programs. It is
used from `_MANY` files on, and where the files are not known.
"""

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, List, Optional, Union

    AnyPath = Union[str, os.PathLike[str]]
    ForEach = Callable[[Callable[[str], None], List[str]], None]

_AT_ONCE = 16
_MANY = 1000
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# Network file systems that cannot flush a folder write its names through.
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def flush(paths: "Iterable[AnyPath]") -> None:
    """Returns when these files and folders are on the disk. Raises OSError.

    Flush the folder of a new file too, and the parent of a new folder: they contain the name.
    """
    texts = sorted({os.fspath(path) for path in paths})
    if len(texts) > _MANY:
        devices = {os.lstat(path).st_dev: path for path in texts}
        for path in devices.values():
            flush_file_system(path)
        return
    _for_each(flush_one, texts)


def flush_one(path: "AnyPath") -> None:
    """Like `flush`, for one file or folder."""
    _flush_path(os.fspath(path), _OPEN)


def flush_open(handle: int) -> None:
    """Like `flush`, for an open file."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def flush_below(folder: "AnyPath", *more: "AnyPath", for_each: "Optional[ForEach]" = None) -> None:
    """Like `flush`, for a folder with all of its contents, and for `more`. Does not follow links.

    Ignores what does not exist or disappears in the meantime. `for_each` calls a function with every path, several at
    a time, for programs that have threads for it.
    """
    folder = os.fspath(folder)
    paths = [os.fspath(path) for path in more]
    pending = [folder]
    while pending:
        place = pending.pop()
        try:
            entries = list(os.scandir(place))
        except FileNotFoundError:
            continue
        # An empty folder has nothing to flush: its name is in the folder above.
        if entries or place == folder:
            paths.append(place)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                paths.append(entry.path)
    if len(paths) > _MANY:
        flush_file_system(folder)
        return
    (for_each or _for_each)(_flush_if_present, paths)


def flush_file_system(path: "AnyPath") -> None:
    """Returns when the whole file system that contains `path` is on the disk. Raises OSError."""
    import ctypes

    handle = os.open(path, _OPEN)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(handle)


def write(path: "AnyPath", data: bytes, mode: int = 0o666) -> None:
    """Writes `data` to the file `path`: after a power cut it is the old file or the complete new one."""
    _replace(os.fspath(path), data, mode, write_new)
    flush_one(os.path.dirname(os.fspath(path)) or ".")


def write_unflushed(path: "AnyPath", data: bytes, mode: int = 0o666) -> None:
    """Writes `data` to the file `path`: readers see the old file or the complete new one. A power cut may damage it."""
    _replace(os.fspath(path), data, mode, _create)


def write_new(path: "AnyPath", data: bytes, mode: int = 0o666) -> None:
    """Creates a file with `data` and flushes it, but not its name."""
    _create(path, data, mode, flush_open)


def _replace(path: str, data: bytes, mode: int, create: "Callable[[str, bytes, int], None]") -> None:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, ".{}.{}-{}".format(name[:200], os.getpid(), os.urandom(4).hex()))
    try:
        create(temporary, data, mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def _create(path: "AnyPath", data: bytes, mode: int, finish: "Callable[[int], None] | None" = None) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        if finish is not None:
            finish(handle)
    finally:
        os.close(handle)


def make_folder(path: "AnyPath", mode: int = 0o777) -> None:
    """Creates the folder `path` and its missing parents, and flushes their names.

    `mode` is that of `path`; the parents get the default mode.
    """
    path = os.path.abspath(os.fspath(path))
    missing: "list[str]" = []
    above = path
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode if folder == path else 0o777)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
    flush({os.path.dirname(folder) for folder in missing})


def _flush_path(path: str, flags: int) -> None:
    try:
        handle = os.open(path, flags)
    except PermissionError:
        # A writable file need not be readable, and only a readable one can be opened and flushed.
        flush_file_system(_readable_parent(path))
        return
    try:
        flush_open(handle)
    finally:
        os.close(handle)


def _readable_parent(path: str) -> str:
    path = os.path.dirname(os.path.abspath(path))
    while path != "/" and not os.access(path, os.R_OK):
        path = os.path.dirname(path)
    return path


def _flush_if_present(path: str) -> None:
    try:
        _flush_path(path, _OPEN | os.O_NOFOLLOW)
    except OSError as error:
        # ELOOP, ENXIO: it became a link or a pipe.
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise


def _for_each(action: "Callable[[str], None]", paths: "list[str]") -> None:
    """Calls `action` with every path, several at a time; raises the first error when all are done."""
    if len(paths) < 2:
        for path in paths:
            action(path)
        return
    # Imported here, because it takes a few milliseconds that most scripts need not spend.
    import threading

    rest = list(paths)
    errors: "list[OSError]" = []

    def work() -> None:
        while rest:
            try:
                action(rest.pop())
            except IndexError:
                return
            except OSError as error:
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(_AT_ONCE, len(paths)) - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
