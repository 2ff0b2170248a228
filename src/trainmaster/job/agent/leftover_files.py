"""Files that a script leaves in its working folder, outside of outputs/ and logs/.

What the snapshot brought and nobody changed is none of them. Python 3.6, standard library: this runs on the node.
"""

import os
import time
from itertools import islice

from trainmaster.job.agent import jsonfile, layout
from trainmaster.job.errors import TrainmasterError

_COLLECTED = ("outputs", "logs")
_PASSED_OVER = "__pycache__"
# A script may leave millions of files, on a file system that takes its time.
_MOST = 100000
_SECONDS = 5.0
_NAMED = 5
_LONGEST_NAME = 300
# The kernel stamps files with a clock that is some milliseconds behind.
_TICK = 0.05
_PIECE = 1 << 20


def report(folder, number, snapshot, started_at):
    """What the run in `folder` left on node `number`, as its result tells it; None if that cannot be said.

    `snapshot` is what this attempt laid out, if it did; otherwise the first attempt says it, and when it began.
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
    largest = sorted(files, key=lambda file: (-file[1], file[0]))[:_NAMED]
    return {
        "count": len(files),
        "bytes": sum(size for _, size in files),
        "largest": [{"name": _as_text(name), "bytes": size} for name, size in largest],
        "all": is_all,
    }


def read_start_time(node):
    """When the processes of the node folder `node` were started, as its files say; None if they do not."""
    for name in ("running.json", "result.json"):
        try:
            started_at = jsonfile.read(os.path.join(node, name)).get("started_at")
        except (OSError, ValueError, AttributeError):
            continue
        if started_at:
            return started_at
    return None


def find(code, snapshot, started_at):
    """Path and size of each file that was left in `code`, and whether all of them were looked at.

    `snapshot` is the path of the manifest and the folder of blobs; files that have not been written to since the
    processes were started are as they were laid out.
    """
    manifest, blobs = snapshot
    known = _known(manifest)
    found = []  # type: list[tuple[str, int]]
    looked_at, until = 0, time.monotonic() + _SECONDS
    pending = [""]
    while pending:
        folder = pending.pop()
        for entry in _entries(code, folder):
            name = folder + entry.name
            looked_at += 1
            if looked_at > _MOST or time.monotonic() > until:
                return found, False
            if entry.is_dir(follow_symlinks=False):
                if entry.name != _PASSED_OVER and name not in _COLLECTED:
                    pending.append(name + "/")
            elif entry.is_file(follow_symlinks=False):
                size = _size_if_left(entry, known.get(name), blobs, started_at)
                if size is not None:
                    found.append((name, size))
    return found, True


def _known(manifest):
    """Size and digest of the snapshot's files, by their paths; none of a snapshot that cannot be read any more."""
    try:
        files, _, _ = layout.read_manifest(manifest)
    except TrainmasterError:
        return {}
    return {path: (size, digest) for path, digest, size, _ in files}


def _entries(code, folder):
    try:
        with os.scandir(os.path.join(code, folder)) as entries:
            return list(islice(entries, _MOST + 1))
    except OSError:
        # It has just gone, or may not be read.
        return []


def _size_if_left(entry, known, blobs, started_at):
    """The size of a file, unless it is as the snapshot brought it."""
    try:
        found = entry.stat(follow_symlinks=False)
        if known is not None and known[0] == found.st_size:
            if found.st_mtime < started_at - _TICK or _is_same(entry.path, layout.blob_path(blobs, known[1])):
                return None
    except OSError:
        return None
    return found.st_size


def _is_same(path, blob):
    with open(path, "rb") as one, open(blob, "rb") as other:
        while True:
            piece = one.read(_PIECE)
            if piece != other.read(_PIECE):
                return False
            if not piece:
                return True


def _as_text(name):
    return os.fsencode(name).decode("utf-8", "replace")[:_LONGEST_NAME]
