"""The files of a run that has ended: moved from its working folder into the run, and flushed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from trainmaster.job.agent import durable
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder

# Files are flushed at the same time, so that the file system commits its journal once for all of them. The threads are
# kept, because starting them for each of the short runs of a sweep costs more than the flushes.
_AT_ONCE = 16
_FLUSHERS = ThreadPoolExecutor(_AT_ONCE, "flush")
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def collect(folder: RunFolder) -> None:
    """Moves outputs/ and logs/ of the working folder to the run's files. May be repeated."""
    for name in ("outputs", "logs"):
        place = os.path.join(folder.files, name)
        # A script may have replaced its folders by links to other places.
        if not beneath.is_folder(folder.path, f"code/{name}") or not beneath.is_folder(folder.path, "files"):
            continue
        if os.path.islink(place):
            os.unlink(place)
        if not os.path.exists(place):
            beneath.rename(folder.path, f"code/{name}", f"files/{name}")


def flush(folder: RunFolder) -> None:
    """Flushes the files of a run to disk, so that they survive a power cut."""
    if not folder.path.is_dir():
        return
    with os.scandir(folder.path) as entries:
        notes = [entry.path for entry in entries if entry.is_file(follow_symlinks=False)]
    durable.flush_below(folder.files, folder.path.parent, folder.path, *notes, for_each=_flush_each)


def _flush_each(flush_path: Callable[[str], None], paths: Sequence[str]) -> None:
    for start in range(0, len(paths), _AT_ONCE):
        handles = []
        try:
            for path in paths[start : start + _AT_ONCE]:
                try:
                    handles.append(os.open(path, _OPEN))
                except OSError:
                    # It is gone, or may not be read: `flush_path` knows what to do about it.
                    flush_path(path)
            list(_FLUSHERS.map(durable.flush_open, handles))
        finally:
            for handle in handles:
                os.close(handle)
