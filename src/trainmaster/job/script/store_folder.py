"""A storage that is a folder of this machine."""

import os
import shutil
from contextlib import contextmanager

from trainmaster.job.agent import durable
from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.storage import Storage, StoredFile
from trainmaster.job.script.store_paths import join, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from typing import Iterator

    PathText = str | os.PathLike[str]

# The name of a file that is still being written. A killed copy may leave one behind; listings leave it out.
_PART_PREFIX, _PART_SUFFIX = ".trainmaster-", ".part"


class FolderStorage(Storage):
    """The files below one folder. Links in it are followed: the folder belongs to the user who made them."""

    def __init__(self, root: "PathText") -> None:
        self._root = os.fspath(root)

    def list(self, prefix: str) -> "builtins.list[StoredFile]":
        """The files at and below `prefix`, sorted."""
        start = os.path.join(self._root, prefix)
        with _explain("read", start):
            if os.path.isfile(start):
                return [StoredFile(prefix, os.path.getsize(start))]
            return sorted(_walk(start, prefix, frozenset())) if os.path.isdir(start) else []

    def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        return os.path.isfile(os.path.join(self._root, path))

    def get(self, path: str, local: "PathText") -> None:
        """Copies the file at `path` to `local`, which is either complete or absent."""
        target = os.fspath(local)
        with _explain("written", target), open_part(target) as part:
            _copy(os.path.join(self._root, path), part)

    def put(self, local: "PathText", path: str) -> None:
        """Copies the file `local` to `path`: after a power cut it is complete, or as it was before."""
        target = os.path.join(self._root, path)
        with _explain("written", target), open_part(target) as part:
            _copy(os.fspath(local), part)
            durable.flush_one(part)

    def local_path(self) -> "str | None":
        """The folder itself."""
        return self._root


def _copy(source: str, part: str) -> None:
    with _explain("read", source):
        stream = open(source, "rb")
    with stream, open(part, "xb") as written:
        shutil.copyfileobj(stream, written, 1 << 20)


@contextmanager
def open_part(target: "PathText") -> "Iterator[str]":
    """A path next to `target` to write to. It is renamed to `target` at the end, and removed after an error."""
    folder = os.path.dirname(os.path.abspath(target))
    os.makedirs(folder, exist_ok=True)
    part = os.path.join(folder, _PART_PREFIX + os.urandom(8).hex() + _PART_SUFFIX)
    try:
        yield part
        os.replace(part, target)
    finally:
        if os.path.lexists(part):
            os.unlink(part)


def _walk(folder: str, path: str, above: "frozenset[str]") -> "Iterator[StoredFile]":
    real = os.path.realpath(folder)
    if real in above:
        # A link to a folder above it: following it would never end.
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            inner = join(path, entry.name)
            if entry.is_dir():
                for found in _walk(entry.path, inner, above | {real}):
                    yield found
            elif entry.is_file() and not _is_part(entry.name):
                yield StoredFile(inner, entry.stat().st_size)


def _is_part(name: str) -> bool:
    return name.startswith(_PART_PREFIX) and name.endswith(_PART_SUFFIX)


@contextmanager
def _explain(done: str, path: str) -> "Iterator[None]":
    try:
        yield
    except OSError as error:
        raise DatastoreException(
            "{} cannot be {}".format(printable(path), done),
            inner_exception=error,
            cause=error.strerror or str(error),
        ) from error
