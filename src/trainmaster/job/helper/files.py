"""Files and folders on the host."""

import errno
import json
import os
import shutil
import time

# Beside a folder of data: when it was brought.
PLACED = ".placed"
_ABANDONED_SECONDS = 3600.0


def linked(blob, place):
    """A content under a name, as a link where that can be."""
    try:
        os.link(blob, place)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS):
            raise
        copied(blob, place)


def copied(blob, place):
    """A content under a name that may be written to."""
    shutil.copyfile(blob, place)
    os.chmod(place, 0o755 if blob.endswith("x") else 0o644)


def appear(making, place):
    """Gives a folder that is complete its name, unless another connection was quicker to make the same."""
    try:
        os.rename(making, place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def flush(path):
    """Returns when all of the file system in which `path` lies is on the disk: what appears next is complete."""
    import ctypes

    handle = os.open(path, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(handle)


def mark(path):
    """Whether this is the first time."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except OSError:
        return False
    return True


def inside(path, folder):
    real = os.path.realpath(path)
    return real.startswith(os.path.realpath(folder) + "/")


def remove_abandoned(folder):
    """What was half sent when a connection broke off."""
    for name in names(folder):
        path = os.path.join(folder, name)
        if time.time() - changed(path) / 1e9 > _ABANDONED_SECONDS:
            try:
                os.unlink(path)
            except OSError:
                pass


def files_in(top):
    """The files below a folder, or the file itself."""
    if os.path.isfile(top):
        yield top
    for folder, below, found in os.walk(top):
        below.sort()
        for name in sorted(found):
            yield os.path.join(folder, name)


def changed(path):
    """When a file was last written to; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def names(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_json(path):
    try:
        with open(path, "rb") as file:
            return json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None


def write_json(path, data):
    write_whole(path, json.dumps(data).encode("ascii"))


def write_whole(path, data):
    """A file that appears whole."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_new(path + ".part", data, 0o644)
    os.rename(path + ".part", path)


def write_new(path, data, mode):
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(handle, data)
    finally:
        os.close(handle)


def write_all(handle, data):
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
