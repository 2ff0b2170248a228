"""The size limits of a snapshot, and the error for a larger one, which lists the largest paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trainmaster.job.errors import SnapshotException
from trainmaster.snapshots.tree import LINK, Folder

MEGABYTE = 1024 * 1024
_WARN_BYTES = 25 * MEGABYTE
_SHOWN = 10
# If a folder has nearly everything of its parent, list the folder instead of the parent.
_NEARLY_ALL = 0.9


class Limits(NamedTuple):
    """The limits of a snapshot; None means no limit."""

    max_bytes: int | None
    max_files: int | None


class Amount(NamedTuple):
    """A number of files and bytes."""

    files: int = 0
    bytes: int = 0

    def plus(self, other: Amount) -> Amount:
        """The sum of both."""
        return Amount(self.files + other.files, self.bytes + other.bytes)


def effective_limits(max_bytes: int, max_files: int, environment: Mapping[str, str]) -> Limits:
    """The limits, with those set by environment variables."""
    megabytes = _number(environment, "TRAINMASTER_SNAPSHOT_MAX_MB")
    files = _number(environment, "TRAINMASTER_SNAPSHOT_MAX_FILES")
    unlimited = bool(environment.get("AML_SNAPSHOT_NO_FILE_LIMIT"))
    return Limits(
        max_bytes=max_bytes if megabytes is None else int(megabytes * MEGABYTE),
        max_files=None if unlimited else max_files if files is None else int(files),
    )


def _number(environment: Mapping[str, str], name: str) -> float | None:
    text = environment.get(name)
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise SnapshotException(f"{name} must be a number, not {text!r}", hint=f"Unset {name}.") from None


def measure(folders: Iterable[Folder]) -> Amount:
    """Count the files and bytes of the folders; links count as files without bytes."""
    files = total = 0
    for folder in folders:
        files += len(folder.names)
        for signature, content in zip(folder.signatures, folder.contents, strict=True):
            if not content.startswith(LINK):
                total += signature[3]
    return Amount(files, total)


def is_within(amount: Amount, limits: Limits) -> bool:
    """Whether a snapshot of this size is allowed."""
    return (limits.max_bytes is None or amount.bytes <= limits.max_bytes) and (
        limits.max_files is None or amount.files <= limits.max_files
    )


def size_warnings(amount: Amount) -> tuple[str, ...]:
    """Warnings for a snapshot that is allowed but larger than source code should be."""
    if amount.bytes <= _WARN_BYTES:
        return ()
    return (
        f"The source folder has {_text(amount.bytes)}. Keep data in a datastore; "
        "exclude what the script does not need with .amlignore.",
    )


def too_large(source: str, folders: list[Folder], amount: Amount, limits: Limits) -> SnapshotException:
    """The error for a folder above the limits: its largest paths, and what to do."""
    by_count = limits.max_files is not None and amount.files > limits.max_files
    if by_count:
        headline = f"The source folder {source} has {amount.files:,} files; the limit is {limits.max_files:,}"
        variable, value = "TRAINMASTER_SNAPSHOT_MAX_FILES", amount.files
    else:
        limit = _text(limits.max_bytes or 0)
        headline = f"The source folder {source} has {_text(amount.bytes)}; the limit is {limit}"
        variable, value = "TRAINMASTER_SNAPSHOT_MAX_MB", -(-amount.bytes // MEGABYTE)
    largest = _largest(folders, amount, by_count)
    shown = [f"  {_text(held.bytes):>10}  {held.files:>7,} files  {path}" for path, held in largest]
    return SnapshotException(
        headline,
        cause="\n".join(["The largest in it:", *shown]),
        hint=f"Exclude what the script does not need by a line in .amlignore, for example: {largest[0][0]}\n"
        f"or raise the limit with the environment variable {variable}={value}.",
    )


def _largest(folders: list[Folder], amount: Amount, by_count: bool) -> list[tuple[str, Amount]]:
    if not by_count:
        files = sorted(_files(folders), key=lambda item: -item[1].bytes)[:_SHOWN]
        if sum(held.bytes for _, held in files) * 2 >= amount.bytes:
            return files
    return _heavy_folders(folders, by_count)[:_SHOWN]


def _files(folders: list[Folder]) -> Iterable[tuple[str, Amount]]:
    for folder in folders:
        for name, signature in zip(folder.names, folder.signatures, strict=True):
            yield "/" + os.fsdecode(folder.path_of(name)), Amount(1, signature[3])


def _heavy_folders(folders: list[Folder], by_count: bool) -> list[tuple[str, Amount]]:
    """The largest paths directly in the source; if one part of a path has nearly everything, that part instead."""
    holds = {folder.path: measure([folder]) for folder in folders}
    children: dict[bytes, list[bytes]] = {}
    # Parents come before their children in the walk, so in reverse order every folder is complete when it is added.
    for folder in reversed(folders):
        children[folder.path] = [folder.path_of(name) for name in folder.subfolders]
        for child in children[folder.path]:
            holds[folder.path] = holds[folder.path].plus(holds[child])

    def weight(path: bytes) -> int:
        return holds[path].files if by_count else holds[path].bytes

    shown = [b""]
    while len(shown) < _SHOWN:
        path = max(shown, key=lambda one: weight(one) if children[one] else -1)
        below = [child for child in children[path] if weight(child)]
        if not below or (path and max(map(weight, below)) < _NEARLY_ALL * weight(path)):
            break
        shown.remove(path)
        shown.extend(below)
    ranked = sorted(shown, key=weight, reverse=True)
    return [("/" + os.fsdecode(path) + "/" if path else "/*", holds[path]) for path in ranked]


def _text(size: int) -> str:
    return f"{size / MEGABYTE:,.1f} MB" if size >= MEGABYTE / 10 else f"{size / 1024:,.1f} kB"
