"""Lists built environments with their sizes, and removes those that are not needed. Hard links count once."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments import build_record
from trainmaster.environments.build_record import BuildRecord
from trainmaster.environments.prefix import target

_BUILT = re.compile(r"(?P<digest>[0-9a-f]{32})\.(?P<number>\d+)")
_UNFINISHED = re.compile(r"\.building-(?P<digest>[0-9a-f]{32})-\d+.*")
_DAY = 86400.0


@dataclass(frozen=True)
class Built:
    """One build of an environment."""

    name: str
    """`<digest>.<n>`."""
    path: Path
    current: bool
    """Whether the digest points to this build; if not, a newer build replaced it."""
    facts: BuildRecord | None
    last_used: float
    bytes: int
    """The size of all files."""
    own_bytes: int
    """The size of files not shared with uv's cache or another environment: what removing the build frees."""

    @property
    def digest(self) -> str:
        return self.name.partition(".")[0]


def list_builds(place: Path) -> list[Built]:
    """List all builds in `place`, most recently used first."""
    found = []
    for entry in place.iterdir() if place.is_dir() else ():
        if _BUILT.fullmatch(entry.name) and entry.is_dir():
            found.append(describe_build(entry))
    return sorted(found, key=lambda each: (-each.last_used, each.name))


def describe_build(path: Path) -> Built:
    """Describe one build."""
    whole, own = sizes(path)
    current = target(path.parent, path.name.partition(".")[0]) == path
    return Built(path.name, path, current, build_record.read(path), build_record.last_used(path), whole, own)


def sizes(folder: Path) -> tuple[int, int]:
    """The size of all files in `folder`, and of those without hard links elsewhere; each file counts once."""
    whole = own = 0
    names: dict[int, tuple[int, int, int]] = {}
    pending = [str(folder)]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                found = entry.stat(follow_symlinks=False)
                seen = names.get(found.st_ino, (0, 0, 0))[0]
                names[found.st_ino] = (seen + 1, found.st_nlink, found.st_size)
    for seen, links, size in names.values():
        whole += size
        own += size if seen >= links else 0
    return whole, own


def choose_removable(
    builds: Sequence[Built],
    in_use: Collection[str],
    now: float,
    older_than_days: float | None = None,
    keep_bytes: int | None = None,
) -> list[Built]:
    """Choose the builds to remove, never one in use: replaced ones, those unused for days, those above the size limit.

    Without limits only replaced builds are chosen. The most recently used builds are kept longest.
    """
    free = [each for each in builds if str(each.path) not in in_use]
    gone = [
        each
        for each in free
        if not each.current or (older_than_days is not None and now - each.last_used > older_than_days * _DAY)
    ]
    if keep_bytes is not None:
        total = sum(each.bytes for each in builds if each not in gone)
        for each in sorted((each for each in free if each not in gone), key=lambda each: each.last_used):
            if total <= keep_bytes:
                break
            gone.append(each)
            total -= each.bytes
    return gone


def hide(place: Path, name: str) -> Path | None:
    """Rename a build atomically so that nothing finds it; None if it does not exist or is being rebuilt."""
    parts = _BUILT.fullmatch(name)
    if not parts:
        return None
    digest = parts["digest"]
    with open(place / f"{digest}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another process is rebuilding it.
            return None
        if target(place, digest) == place / name:
            (place / digest).unlink(missing_ok=True)
            log_of(place, digest).unlink(missing_ok=True)
            (place / f"{digest}.failed").unlink(missing_ok=True)
        hidden = place / f".removing-{name}-{os.getpid()}"
        try:
            (place / name).rename(hidden)
        except FileNotFoundError:
            return None
    return hidden


def delete(place: Path) -> None:
    """Delete the files of hidden builds, also those of killed removals, and leftovers of killed builders."""
    for leftover in place.glob(".removing-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in place.glob(".building-*"):
        unfinished = _UNFINISHED.fullmatch(leftover.name)
        if unfinished and not _is_being_built(place, unfinished["digest"]):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_being_built(place: Path, digest: str) -> bool:
    with open(place / f"{digest}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def log_of(place: Path, digest: str) -> Path:
    """The build log of an environment that was built on request, not for a run."""
    return place / f"{digest}.log"
