"""What has to survive a power cut is on the disk before anybody is told that it is done.

Every file is flushed by itself, many of them at once, so that the file system writes its journal once for all of them.
A sync of the whole file system would take less for many files, but it also waits for what others are writing: it is
used from `_MANY` files on, and where the files are not known.
"""

import errno
import os

_AT_ONCE = 16
_MANY = 1000
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# Network file systems that do not let a folder be flushed: they write its names through.
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def flush(paths):
    """Returns when these files and folders are on the disk. Raises OSError.

    A file needs its folder flushed too, and a new folder the one above it: the name lies there.
    """
    paths = sorted({os.fspath(path) for path in paths})
    if len(paths) > _MANY:
        devices = {os.lstat(path).st_dev: path for path in paths}
        for path in devices.values():
            flush_file_system(path)
        return
    _each(flush_one, paths)


def flush_one(path):
    """`flush` of one file or folder."""
    _flush_path(os.fspath(path), _OPEN)


def flush_open(handle):
    """`flush` of an open file."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def flush_below(folder, *more):
    """`flush` of a folder with all that is in it, and of `more`. Links are not followed.

    What is not there, or goes away meanwhile, is passed over.
    """
    folder = os.fspath(folder)
    paths = [folder] + [os.fspath(path) for path in more]
    pending = [folder]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
                paths.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                paths.append(entry.path)
    if len(paths) > _MANY:
        flush_file_system(folder)
        return
    _each(_flush_if_there, paths)


def flush_file_system(path):
    """Returns when all of the file system in which `path` lies is on the disk. Raises OSError."""
    import ctypes

    handle = os.open(path, _OPEN)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(handle)


def write(path, data, mode=0o666):
    """Puts `data` (bytes) into the file `path`: after a power cut it is the old file or the whole new one."""
    path = os.fspath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, ".{}.{}-{}".format(name[:200], os.getpid(), os.urandom(4).hex()))
    try:
        write_new(temporary, data, mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    flush_one(folder or ".")


def write_new(path, data, mode=0o666):
    """A new file with `data`, flushed; its name is not."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        flush_open(handle)
    finally:
        os.close(handle)


def make_folder(path, mode=0o777):
    """Makes the folder `path` and those above it, as far as they are missing, and flushes their names.

    `mode` is that of `path`; those above it are made with the usual one.
    """
    path = os.path.abspath(os.fspath(path))
    missing = []
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


def _flush_path(path, flags):
    try:
        handle = os.open(path, flags)
    except PermissionError:
        # What may be written need not be readable, which is what flushing it by itself takes.
        flush_file_system(_readable_above(path))
        return
    try:
        flush_open(handle)
    finally:
        os.close(handle)


def _readable_above(path):
    path = os.path.dirname(os.path.abspath(path))
    while path != "/" and not os.access(path, os.R_OK):
        path = os.path.dirname(path)
    return path


def _flush_if_there(path):
    try:
        _flush_path(path, _OPEN | os.O_NOFOLLOW)
    except OSError as error:
        # ELOOP, ENXIO: it became a link or a pipe.
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            raise


def _each(one, paths):
    """Calls `one` with every path, several at a time; the first error is raised when all are done."""
    if len(paths) < 2:
        for path in paths:
            one(path)
        return
    # Costs a script a few milliseconds that never comes here.
    import threading

    rest, errors = list(paths), []

    def work():
        while rest:
            try:
                one(rest.pop())
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
