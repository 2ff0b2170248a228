"""Files and folders on the host."""

import errno
import json
import os
import shutil
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

# The ending of the file beside a folder of data whose time says when the data was sent.
PLACED = ".placed"
_ABANDONED_SECONDS = 3600.0


# The folders of contents that many runs use.
_CACHED = ("blobs", "environments", "kits", "pythons", "snapshots")


def link_cache(root: str, cache: str) -> None:
    """Lets the workspace's folder have the contents that many runs use in another folder, which hosts may share."""
    for name in _CACHED if cache else ():
        folder = os.path.join(cache, name)
        os.makedirs(folder, exist_ok=True)
        try:
            os.symlink(folder, os.path.join(root, name))
        except FileExistsError:
            pass


def link_blob(blob: str, path: str) -> None:
    """Gives a blob the name `path`: a hard link where possible, else a copy."""
    try:
        os.link(blob, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV):
            raise
        copy_blob(blob, path)


def copy_blob(blob: str, path: str) -> None:
    """Copies a blob to `path`; the copy is writable."""
    shutil.copyfile(blob, path)
    os.chmod(path, 0o755 if blob.endswith("x") else 0o644)


def publish_folder(making: str, path: str) -> None:
    """Gives a complete folder its name, unless another connection was faster to create the same folder."""
    try:
        os.rename(making, path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def flush(path: str) -> None:
    """Returns when the whole file system that contains `path` is on the disk: what appears next is complete."""
    import ctypes

    handle = os.open(path, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(handle):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(handle)


def mark(path: str) -> bool:
    """Creates an empty file; False if it exists already or cannot be created."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except OSError:
        return False
    return True


def is_inside(path: str, folder: str) -> bool:
    real = os.path.realpath(path)
    return real.startswith(os.path.realpath(folder) + "/")


def remove_abandoned(folder: str) -> None:
    """Removes files whose transfer was cut off with its connection."""
    for name in names(folder):
        path = os.path.join(folder, name)
        if time.time() - modification_time(path) / 1e9 > _ABANDONED_SECONDS:
            try:
                os.unlink(path)
            except OSError:
                pass


def list_files(top: str) -> "Iterator[str]":
    """The files below a folder, or the file itself."""
    if os.path.isfile(top):
        yield top
    for folder, below, found in os.walk(top):
        below.sort()
        for name in sorted(found):
            yield os.path.join(folder, name)


def modification_time(path: str) -> int:
    """When a file was last written to, in nanoseconds; 0 if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def names(folder: str) -> "list[str]":
    """The sorted names in a folder; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_json(path: str) -> "Any":
    """The data in a file, or None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None


def write_json(path: str, data: object) -> None:
    write_whole(path, json.dumps(data).encode("ascii"))


def write_whole(path: str, data: bytes) -> None:
    """Writes a file that appears complete, and creates its folder."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_new(path + ".part", data, 0o644)
    os.rename(path + ".part", path)


def write_new(path: str, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(handle, data)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
