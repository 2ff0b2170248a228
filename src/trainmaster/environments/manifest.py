"""Checks in milliseconds whether a built environment is still complete.

A build records the modification time of every folder and the names in it. A folder's time changes when something in it
is added, removed or renamed, but not when a file's contents change. If a folder's time differs (the first import
created a `__pycache__`), its names are compared; if nothing is missing, the new time is recorded.

Files overwritten in place are detected by their size, where that is cheap: programs, modules and the first level of
every package. Such a file may be a hard link to uv's cache.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

_TIMES = "manifest.json"
_NAMES = "contents.json"
_SIZES = "sizes.json"
_CACHE = "__pycache__"


def record(folder: Path) -> None:
    """Record the contents of `folder`; the last step of a build."""
    times: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    pending = [""]
    while pending:
        place = pending.pop()
        names[place], below = _look(f"{folder}/{place}")
        pending += [f"{place}/{name}" if place else name for name in below]
        # The top folder's time changes with the files written here; its subfolders are checked by their own times.
        if place:
            times[place] = os.stat(f"{folder}/{place}").st_mtime_ns
    (folder / _NAMES).write_text(json.dumps(names))
    (folder / _SIZES).write_text(json.dumps(_sizes(folder)))
    (folder / _TIMES).write_text(json.dumps(times))


def _look(place: str) -> tuple[list[str], list[str]]:
    """List the names in a folder, and those that are folders."""
    names, below = [], []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name == _CACHE:
                continue
            names.append(entry.name)
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.name)
    return names, below


def _sizes(folder: Path) -> dict[str, int]:
    """The sizes of programs, modules and the first level of every package."""
    sites = list(folder.glob("lib/python3.*/site-packages"))
    places = [folder / "bin", *sites, *(package for site in sites for package in site.iterdir())]
    files = [file for place in places if place.is_dir() for file in place.iterdir()]
    return {str(file.relative_to(folder)): file.lstat().st_size for file in files if not file.is_dir()}


def list_changed(folder: Path) -> list[str]:
    """List the files that were overwritten, judging by their size."""
    try:
        sizes: dict[str, int] = json.loads((folder / _SIZES).read_bytes())
    except FileNotFoundError:
        # The environment was built by an earlier release.
        return []
    return [name for name, size in sizes.items() if _size(f"{folder}/{name}") not in (size, None)]


def _size(path: str) -> int | None:
    """The size, or None for a missing file, which the folder's names reveal."""
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return None


def is_whole(folder: Path) -> bool:
    """Whether the environment is complete, as far as folder times and some file sizes tell."""
    try:
        if list_changed(folder):
            return False
        times: dict[str, int] = json.loads((folder / _TIMES).read_bytes())
        now = {place: os.stat(f"{folder}/{place}").st_mtime_ns for place in times}
        touched = [place for place, time in times.items() if now[place] != time]
        if not touched:
            return bool(times)
        names = json.loads((folder / _NAMES).read_bytes())
        whole = all(set(names[place]) <= set(os.listdir(f"{folder}/{place}")) for place in touched)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    if whole:
        _keep(folder, now)
    return whole


def _keep(folder: Path, times: dict[str, int]) -> None:
    """Record the new times, so that the names need not be compared again. A read-only environment keeps the old."""
    whole = folder / f".{_TIMES}-{os.getpid()}"
    with contextlib.suppress(OSError):
        whole.write_text(json.dumps(times))
        whole.replace(folder / _TIMES)
