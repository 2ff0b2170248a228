"""Checks whether the model files of a service have changed since it was started.

A replica that is started again reads them again; were they others by then, two replicas of one service would answer
differently. So they are remembered when a generation begins, and looked at now and then (sizes and times only).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trainmaster.job.agent import jsonfile

Files = dict[str, list[int]]


class Models:
    """The recorded state of the files in one folder."""

    def __init__(self, root: str, kept: Path) -> None:
        self._root = root
        self._noted = _read(kept)
        if self._noted is None:
            self._noted = _look(root)
            jsonfile.write(str(kept), self._noted)

    def list_changed(self) -> list[str]:
        """List the files, relative to the folder, that were removed, added or changed."""
        now, then = _look(self._root), self._noted or {}
        return sorted(name for name in {*now, *then} if now.get(name) != then.get(name))


def _look(root: str) -> Files:
    """Sizes and times of all files. Links are followed, because models are linked into a service."""
    found: Files = {}
    seen: set[str] = set()
    for folder, below, names in os.walk(root, followlinks=True) if root else ():
        # A link to a parent folder must not cause an endless loop.
        below[:] = [name for name in below if _is_new(os.path.join(folder, name), seen)]
        for name in names:
            path = os.path.join(folder, name)
            try:
                stat = os.stat(path)
            except OSError:
                continue  # a broken link counts as a missing file
            found[os.path.relpath(path, root)] = [stat.st_size, stat.st_mtime_ns]
    return found


def _is_new(folder: str, seen: set[str]) -> bool:
    real = os.path.realpath(folder)
    known = real in seen
    seen.add(real)
    return not known


def _read(kept: Path) -> Files | None:
    try:
        noted: Any = jsonfile.read(str(kept))
    except (OSError, ValueError):
        return None
    return noted if isinstance(noted, dict) else None
