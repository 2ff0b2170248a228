"""Copying many files into and out of a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainmaster.job.agent import durable
from trainmaster.job.errors import DatastoreException
from trainmaster.storage.paths import join, shown
from trainmaster.storage.progress import Progress, Say
from trainmaster.storage.sources import Sources
from trainmaster.storage.storage import Storage, StoredFile

# A remote store answers each file after a while, and a disk takes a while to have it for good: several at once hide
# that. Reading from a disk gains nothing by it.
_THREADS = 8
_FEW = 20


@dataclass(frozen=True)
class _Copy:
    shown: str
    size: Callable[[], int]
    is_there: Callable[[], bool]
    copy: Callable[[], None]


def upload(storage: Storage, sources: Sources, target: str, overwrite: bool, say: Say, where: str) -> int:
    """Put `sources` below `target`; how many were copied, not counting those that were there already."""
    for line in sources.left_out:
        say(line)
    copies = [_upload_of(storage, source.local, join(target, source.path)) for source in sources.files]
    root = storage.local_path()
    threads = 1 if root and len(copies) <= _FEW else _THREADS
    copied = _run(copies, overwrite, say, "Uploaded", f"to {where}", threads)
    if root is not None and sources.files:
        _flush_names(root, [join(target, source.path) for source in sources.files])
    return copied


def _flush_names(root: Path, paths: Sequence[str]) -> None:
    """What was uploaded survives a power cut: each file is on the disk, and its name is when its folder is."""
    folders = {above for path in paths for above in PurePosixPath(path).parents}
    try:
        durable.flush({root.parent, *(root / folder for folder in folders)})
    except OSError as error:
        raise DatastoreException(f"{shown(root)} cannot be written", cause=error.strerror or str(error)) from error


def download(storage: Storage, files: Sequence[tuple[StoredFile, Path]], overwrite: bool, say: Say, where: str) -> int:
    """Get each file to its local place; how many were copied, not counting those that were there already."""
    copies = [_download_of(storage, file, local) for file, local in files]
    threads = 1 if storage.local_path() else _THREADS
    return _run(copies, overwrite, say, "Downloaded", f"from {where}", threads)


def files_by_prefix(storage: Storage, prefix: str) -> list[StoredFile]:
    """The file or folder `prefix`; when there is none, the files whose path begins with it, as in v1."""
    files = storage.list(prefix)
    if files or not prefix:
        return files
    parent = str(PurePosixPath(prefix).parent)
    around = storage.list("" if parent == "." else parent)
    return [file for file in around if file.path.startswith(prefix)]


def _upload_of(storage: Storage, local: Path, path: str) -> _Copy:
    return _Copy(path, lambda: local.stat().st_size, lambda: storage.exists(path), lambda: storage.put(local, path))


def _download_of(storage: Storage, file: StoredFile, local: Path) -> _Copy:
    return _Copy(file.path, lambda: file.size, local.is_file, lambda: storage.get(file.path, local))


def _run(copies: Sequence[_Copy], overwrite: bool, say: Say, verb: str, where: str, threads: int) -> int:
    progress = Progress(say, verb, len(copies))

    def one(copy: _Copy) -> None:
        if not overwrite and copy.is_there():
            progress.skipped_file(copy.shown)
            return
        copy.copy()
        progress.copied_file(copy.shown, copy.size())

    try:
        _each(one, copies, threads)
    except (DatastoreException, OSError) as error:
        raise _stopped(error, progress, len(copies), f"{verb} {{}} {where}") from error
    progress.finish(where)
    return progress.copied


def _each(one: Callable[[_Copy], None], copies: Sequence[_Copy], threads: int) -> None:
    if threads == 1 or len(copies) < 2:
        for copy in copies:
            one(copy)
        return
    # Loaded here because most stores are folders, and `import trainmaster` has to stay quick.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="datastore") as pool:
        futures = [pool.submit(one, copy) for copy in copies]
        try:
            for future in futures:
                future.result()
        finally:
            # After an error (or Ctrl-C) the files on their way are finished, the others are not begun.
            pool.shutdown(cancel_futures=True)


def _stopped(error: Exception, progress: Progress, total: int, done: str) -> DatastoreException:
    """The first error, with what was done until then."""
    if not isinstance(error, DatastoreException):
        error = DatastoreException(shown(error))
    if total == 1:
        return error
    summary = done.format(f"only {progress.copied} of {total} files")
    return DatastoreException(
        f"{summary}: {error.headline}",
        inner_exception=error,
        cause=error.cause,
        hint=f"{error.hint}\nWhat was copied stays; the same call goes on from there.".strip(),
    )
