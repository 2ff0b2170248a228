"""Files that a script leaves in its working folder, outside outputs/ and logs/.

Unchanged files of the snapshot do not count. Python 3.6, standard library: this runs on the node.
"""

import os
import time
from itertools import islice

from trainmaster.job.agent import jsonfile, layout
from trainmaster.job.errors import TrainmasterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_COLLECTED = ("outputs", "logs")
_IGNORED = "__pycache__"
# A script may leave millions of files, on a slow file system.
_MOST = 100000
_SECONDS = 5.0
_MOST_NAMED = 5
_LONGEST_NAME = 300
# The clock by which the kernel stamps files may be some milliseconds behind.
_TICK = 0.05
_PIECE = 1 << 20


def report(
    folder: str, number: int, snapshot: "tuple[str, str] | None", started_at: "float | None"
) -> "dict[str, Any] | None":
    """Describes the files that the run in `folder` left on node `number`, for its result; None if unknown.

    `snapshot` is the one that this attempt laid out. If it laid out none, the files of the first attempt say what was
    laid out, and when the processes started.
    """
    first = os.path.join(folder, "nodes", str(number))
    if snapshot is None:
        from trainmaster.job.agent import plan

        try:
            snapshot = plan.read(os.path.join(first, "plan.json")).layout
        except plan.PlanError:
            return None
        started_at = read_start_time(first) or started_at
    if snapshot is None or started_at is None:
        return None
    files, is_all = find(os.path.join(folder, "code"), snapshot, started_at)
    largest = sorted(files, key=lambda file: (-file[1], file[0]))[:_MOST_NAMED]
    return {
        "count": len(files),
        "bytes": sum(size for _, size in files),
        "largest": [{"name": _as_text(name), "bytes": size} for name, size in largest],
        "all": is_all,
    }


def read_start_time(node: str) -> "float | None":
    """When the processes of the node folder `node` were started, according to its files; None if unknown."""
    for name in ("running.json", "result.json"):
        try:
            started_at = jsonfile.read(os.path.join(node, name)).get("started_at")
        except (OSError, ValueError, AttributeError):
            continue
        if started_at:
            return float(started_at)
    return None


def find(code: str, snapshot: "tuple[str, str]", started_at: float) -> "tuple[list[tuple[str, int]], bool]":
    """Path and size of each file that was left in `code`, and whether the list is complete.

    `snapshot` is the path of the manifest and the folder of blobs. A file of the snapshot with an older modification
    time than `started_at` is unchanged.
    """
    manifest, blobs = snapshot
    known = _read_known_files(manifest)
    found: "list[tuple[str, int]]" = []
    count, until = 0, time.monotonic() + _SECONDS
    pending = [""]
    while pending:
        folder = pending.pop()
        for entry in _entries(code, folder):
            name = folder + entry.name
            count += 1
            if count > _MOST or time.monotonic() > until:
                return found, False
            if entry.is_dir(follow_symlinks=False):
                if entry.name != _IGNORED and name not in _COLLECTED:
                    pending.append(name + "/")
            elif entry.is_file(follow_symlinks=False):
                size = _size_if_changed(entry, known.get(name), blobs, started_at)
                if size is not None:
                    found.append((name, size))
    return found, True


def _read_known_files(manifest: str) -> "Mapping[str, layout.SnapshotFile]":
    """The snapshot's files by path; none if the manifest cannot be read any more."""
    try:
        return {file.path: file for file in layout.read_manifest(manifest).files}
    except TrainmasterError:
        return {}


def _entries(code: str, folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(os.path.join(code, folder)) as entries:
            return list(islice(entries, _MOST + 1))
    except OSError:
        # It has just been removed, or is not readable.
        return []


def _size_if_changed(
    entry: "os.DirEntry[str]", known: "layout.SnapshotFile | None", blobs: str, started_at: float
) -> "int | None":
    """The size of a file, or None if it is an unchanged file of the snapshot."""
    try:
        found = entry.stat(follow_symlinks=False)
        if known is not None and known.size == found.st_size:
            is_older = found.st_mtime < started_at - _TICK
            if is_older or _have_same_content(entry.path, layout.blob_path(blobs, known.digest)):
                return None
    except OSError:
        return None
    return found.st_size


def _have_same_content(path: str, blob: str) -> bool:
    with open(path, "rb") as one, open(blob, "rb") as other:
        while True:
            piece = one.read(_PIECE)
            if piece != other.read(_PIECE):
                return False
            if not piece:
                return True


def _as_text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")[:_LONGEST_NAME]
