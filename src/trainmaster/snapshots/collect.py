"""Removes unused snapshots and their contents.

A process that takes a snapshot holds a shared lock and touches the manifest, because some time passes until a run
refers to it. The collector holds the lock exclusively and keeps young manifests.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from trainmaster.snapshots.cache import drop_caches

YOUNG_SECONDS = 3600.0


@contextlib.contextmanager
def taking(workspace: str) -> Iterator[None]:
    """Keep the collector from removing anything while a snapshot is taken."""
    try:
        handle = _open(workspace)
    except OSError:
        # Taking the snapshot will report what is wrong with the folder.
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def collect(workspace: Path, needed: Collection[str], now: float | None = None) -> int:
    """Remove snapshots that are neither in `needed` (snapshot ids) nor young; return the number of freed bytes.

    Nothing is removed while a snapshot is being taken.
    """
    if not (workspace / "snapshots").is_dir():
        return 0
    handle = _open(str(workspace))
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0
        return _collect(workspace, needed, time.time() if now is None else now)
    finally:
        os.close(handle)


def _collect(workspace: Path, needed: Collection[str], now: float) -> int:
    doomed: list[Path] = []
    kept: list[Path] = []
    for path in (workspace / "snapshots").glob("*.json"):
        is_young = now - path.stat().st_mtime < YOUNG_SECONDS
        (kept if is_young or path.stem in needed else doomed).append(path)
    try:
        contents = {digest for path in kept for digest in _contents(path)}
    except (OSError, ValueError, KeyError, TypeError):
        # A manifest is damaged, so its contents are unknown: remove nothing.
        return 0
    blobs = [path for path in (workspace / "blobs").glob("[0-9a-f][0-9a-f]/*") if path.name not in contents]
    if doomed or blobs:
        drop_caches(workspace)
    # Remove manifests before blobs: if the process is killed, no manifest refers to a missing blob.
    return sum(map(_remove, doomed)) + sum(map(_remove, blobs))


def _contents(manifest: Path) -> list[str]:
    return [each["digest"] for each in json.loads(manifest.read_bytes())["files"]]


def _remove(path: Path) -> int:
    freed = path.stat().st_blocks * 512
    path.unlink()
    return freed


def _open(workspace: str) -> int:
    """Open the workspace folder, which is what gets locked."""
    return os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
