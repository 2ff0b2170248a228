"""Which local files an upload takes, and the path each gets in the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.storage.paths import join, shown


@dataclass(frozen=True)
class Source:
    """A local file, and its path below the target of the upload."""

    local: Path
    path: str


@dataclass(frozen=True)
class Sources:
    """The files to upload, and a sentence for everything that is left out."""

    files: tuple[Source, ...]
    left_out: tuple[str, ...] = ()


def sources_in(folder: Path, except_for: Path | None = None) -> Sources:
    """All files below `folder`, but not below `except_for` (the store itself may lie in there)."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        hint = "For single files use upload_files." if folder.exists() else "Check src_dir."
        raise UserErrorException(f"The folder to upload, {shown(folder)}, {what}", hint=hint)
    real = Path(os.path.realpath(folder))
    files: list[Source] = []
    left_out: list[str] = []
    not_into = os.path.realpath(except_for) if except_for else None
    for entry, path in _entries(folder, "", str(real), not_into):
        reason = _reason_against(entry, real)
        if reason:
            left_out.append(f"Left out {shown(entry.path)}: {reason}")
        else:
            files.append(Source(Path(entry.path), path))
    return Sources(tuple(files), tuple(left_out))


def sources_of(files: Sequence[str | os.PathLike[str]], relative_root: str | os.PathLike[str] | None) -> Sources:
    """The listed `files`, by their paths from `relative_root` (none: from the folder they have in common)."""
    if isinstance(files, (str, bytes, os.PathLike)) or not isinstance(files, Iterable):
        raise UserErrorException("upload_files takes a list of files", hint=f"Write [{files!r}].")
    # By their written place, not the place a link leads to: that is the name the user knows.
    places = list(dict.fromkeys(os.path.abspath(file) for file in files))
    wrong = [place for place in places if not os.path.isfile(place)]
    if wrong:
        raise UserErrorException(
            f"Nothing was uploaded: no such file: {', '.join(map(shown, wrong[:5]))}",
            cause=f"{len(wrong)} of {len(places)} files are not there, or are not files.",
        )
    if not places:
        return Sources(())
    root = os.path.abspath(relative_root) if relative_root else _common_folder(places)
    outside = [place for place in places if not _is_below(place, Path(root))]
    if outside:
        raise UserErrorException(f"{shown(outside[0])} does not lie below relative_root, {shown(root)}")
    return Sources(tuple(Source(Path(place), os.path.relpath(place, root)) for place in places))


def _entries(folder: Path | str, path: str, root: str, not_into: str | None) -> Iterator[tuple[os.DirEntry[str], str]]:
    """What is no folder below `folder`, with its path from `root`."""
    if path and not_into == join(root, path):
        return
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise UserErrorException(
            f"The folder {shown(folder)} cannot be read",
            inner_exception=error,
            cause=error.strerror or str(error),
        ) from error
    for entry in entries:
        inner = join(path, entry.name)
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path, inner, root, not_into)
        else:
            yield entry, inner


def _reason_against(entry: os.DirEntry[str], root: Path) -> str:
    """Why `entry` is not uploaded; empty when it is."""
    if entry.is_symlink():
        target = Path(os.path.realpath(entry.path))
        if not target.exists():
            return "a link that leads nowhere"
        if target.is_dir():
            return "a link to a folder"
        if not target.is_relative_to(root):
            return "a link that leads out of the folder"
    # Reading a pipe or a device may never end.
    return "" if entry.is_file() else "not a regular file"


def _is_below(place: str, folder: Path) -> bool:
    return Path(place).absolute().is_relative_to(folder.absolute())


def _common_folder(places: Sequence[str]) -> str:
    return os.path.commonpath([os.path.dirname(place) for place in places])
