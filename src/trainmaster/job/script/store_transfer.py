"""Copies many files into and out of a storage."""

import collections
import os
import posixpath
import threading

from trainmaster.job.agent import durable
from trainmaster.job.errors import DatastoreException
from trainmaster.job.script.store_paths import join, printable
from trainmaster.job.script.store_progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

    from trainmaster.job.script.storage import Storage, StoredFile
    from trainmaster.job.script.store_progress import Say
    from trainmaster.job.script.store_sources import Sources

    PathText = str | os.PathLike[str]

# A remote storage takes a while to answer for each file, and a disk to flush it: several copies at once hide that.
# Reading from a disk gains nothing by it.
_THREADS = 8
_FEW = 20


class _Copy:
    """One file to copy: what to call it, and the functions that do it."""

    def __init__(
        self, name: str, size: "Callable[[], int]", exists: "Callable[[], bool]", run: "Callable[[], None]"
    ) -> None:
        self.name = name
        self.size = size
        self.exists = exists
        self.run = run


def upload(storage: "Storage", sources: "Sources", target: str, overwrite: bool, say: "Say", where: str) -> int:
    """Puts `sources` below `target`; returns how many files were copied, without those that already existed."""
    for line in sources.left_out:
        say(line)
    copies = [_upload_of(storage, source.local, join(target, source.path)) for source in sources.files]
    root = storage.local_path()
    threads = 1 if root and len(copies) <= _FEW else _THREADS
    copied = _run(copies, overwrite, say, "Uploaded", "to " + where, threads)
    if root is not None and sources.files:
        _flush_names(os.fspath(root), [join(target, source.path) for source in sources.files])
    return copied


def _flush_names(root: str, paths: "Sequence[str]") -> None:
    """Makes an upload survive a power cut: each file is on the disk already, its name is when its folder is."""
    folders = {os.path.dirname(root), root}
    for path in paths:
        while path:
            path = posixpath.dirname(path)
            folders.add(os.path.join(root, path))
    try:
        durable.flush(folders)
    except OSError as error:
        raise DatastoreException(
            "{} cannot be written".format(printable(root)),
            inner_exception=error,
            cause=error.strerror or str(error),
        ) from error


def download(
    storage: "Storage", files: "Sequence[tuple[StoredFile, PathText]]", overwrite: bool, say: "Say", where: str
) -> int:
    """Copies each file to its local path; returns how many were copied, without those that already existed."""
    copies = [_download_of(storage, file, local) for file, local in files]
    threads = 1 if storage.local_path() else _THREADS
    return _run(copies, overwrite, say, "Downloaded", "from " + where, threads)


def files_by_prefix(storage: "Storage", prefix: str) -> "list[StoredFile]":
    """The file or folder `prefix`; when there is none, the files whose paths begin with it, as in v1."""
    files = storage.list(prefix)
    if files or not prefix:
        return files
    around = storage.list(posixpath.dirname(prefix))
    return [file for file in around if file.path.startswith(prefix)]


def _upload_of(storage: "Storage", local: "PathText", path: str) -> _Copy:
    return _Copy(path, lambda: os.path.getsize(local), lambda: storage.exists(path), lambda: storage.put(local, path))


def _download_of(storage: "Storage", file: "StoredFile", local: "PathText") -> _Copy:
    return _Copy(file.path, lambda: file.size, lambda: os.path.isfile(local), lambda: storage.get(file.path, local))


def _run(copies: "Sequence[_Copy]", overwrite: bool, say: "Say", verb: str, where: str, threads: int) -> int:
    progress = Progress(say, verb, len(copies))

    def run_one(copy: _Copy) -> None:
        if not overwrite and copy.exists():
            progress.count_skipped(copy.name)
            return
        copy.run()
        progress.count_copied(copy.name, copy.size())

    try:
        _run_each(run_one, copies, threads)
    except (DatastoreException, OSError) as error:
        summary = "{} only {} of {} files {}".format(verb, progress.copied, len(copies), where)
        raise _add_summary(error, summary if len(copies) > 1 else "") from error
    progress.finish(where)
    return progress.copied


def _run_each(run_one: "Callable[[_Copy], None]", copies: "Sequence[_Copy]", threads: int) -> None:
    if threads == 1 or len(copies) < 2:
        for copy in copies:
            run_one(copy)
        return
    waiting = collections.deque(copies)
    errors = []  # type: list[BaseException]

    def work() -> None:
        while True:
            try:
                copy = waiting.popleft()
            except IndexError:
                return
            try:
                run_one(copy)
            except BaseException as error:  # noqa: BLE001 - raised again below, in the calling thread
                errors.append(error)
                waiting.clear()

    # No ThreadPoolExecutor: a signal in the middle of its `submit` leaves copies behind that nobody can cancel.
    workers = [threading.Thread(target=work, name="datastore-{}".format(number)) for number in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        # After an error (or Ctrl-C) the copies in progress are finished, the others are not started.
        waiting.clear()
        for worker in workers:
            if worker.is_alive():
                worker.join()
    if errors:
        raise errors[0]


def _add_summary(error: Exception, summary: str) -> DatastoreException:
    """The first error, with how much was copied before it."""
    if not isinstance(error, DatastoreException):
        error = DatastoreException(printable(error))
    if not summary:
        return error
    return DatastoreException(
        "{}: {}".format(summary, error.headline),
        inner_exception=error,
        cause=error.cause,
        hint="{}\nWhat was copied stays; the same call continues from there.".format(error.hint).strip(),
    )
