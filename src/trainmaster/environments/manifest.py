"""Whether a built environment is still whole, told in milliseconds.

After a build the time of the last change of every folder and the names in it are written down. A folder changes its
time when something in it is added, removed or renamed, and not when a file's contents change. A folder with another
time (the first import made a `__pycache__` in it) is looked into; if nothing is missing, its new time is kept.

What was written over in place is noticed by its size, where that costs little: in the programs, the modules and the
first level of every package. Such a file may be uv's own copy too, by another name.
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
    """Writes down what `folder` consists of; the last step of a build."""
    times: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    pending = [""]
    while pending:
        place = pending.pop()
        names[place], below = _look(f"{folder}/{place}")
        pending += [f"{place}/{name}" if place else name for name in below]
        # The top itself changes with the files written here; that its folders are there is seen from theirs.
        if place:
            times[place] = os.stat(f"{folder}/{place}").st_mtime_ns
    (folder / _NAMES).write_text(json.dumps(names))
    (folder / _SIZES).write_text(json.dumps(_sizes(folder)))
    (folder / _TIMES).write_text(json.dumps(times))


def _look(place: str) -> tuple[list[str], list[str]]:
    """The names in a folder, and which of them are folders."""
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
    """The sizes of the files by which most of an environment is begun with."""
    sites = list(folder.glob("lib/python3.*/site-packages"))
    places = [folder / "bin", *sites, *(package for site in sites for package in site.iterdir())]
    files = [file for place in places if place.is_dir() for file in place.iterdir()]
    return {str(file.relative_to(folder)): file.lstat().st_size for file in files if not file.is_dir()}


def changed(folder: Path) -> list[str]:
    """The files of which it is seen that they were written over."""
    try:
        sizes: dict[str, int] = json.loads((folder / _SIZES).read_bytes())
    except FileNotFoundError:
        # Built by an earlier release.
        return []
    return [name for name, size in sizes.items() if _size(f"{folder}/{name}") not in (size, None)]


def _size(path: str) -> int | None:
    """None for one that is missing, which is seen from its folder."""
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return None


def is_whole(folder: Path) -> bool:
    """Whether all that was built is there, as far as the times of the folders and some sizes tell."""
    try:
        if changed(folder):
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
    """The new times, so that they need not be explained again; one that may only be read is looked at each time."""
    whole = folder / f".{_TIMES}-{os.getpid()}"
    with contextlib.suppress(OSError):
        whole.write_text(json.dumps(times))
        whole.replace(folder / _TIMES)
