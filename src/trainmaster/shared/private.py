"""Folders and files for one user alone: made so whatever the umask is, and checked where others may write."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.shared.folders import home

_MODE = 0o700


def make_private(folder: Path) -> None:
    """Makes a folder that nobody else may enter; one that is there stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mkdir(folder, _MODE)
    except FileExistsError:
        return
    # A umask may have taken bits away.
    os.chmod(folder, _MODE)


def make_home() -> None:
    """The user's own folder, if it is not there yet."""
    place = home()
    if place.is_dir():
        return
    durable.make_folder(place.parent)
    make_private(place)
    # What is made in it survives a power cut only with its own name.
    durable.flush_one(place.parent)


def open_private(path: str, flags: int) -> int:
    """For `open(..., opener=open_private)`: a new file is its owner's alone. Logs may hold secrets while a run goes."""
    return os.open(path, flags, 0o600)


def why_not_private(folder: Path, users: Collection[int] | None = None) -> str:
    """Why a folder is not that of this user (or of one of `users`) alone: a sentence; empty if it is."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder."
    if found.st_uid not in (users or (os.geteuid(),)):
        return f"{folder} belongs to another user (user id {found.st_uid})."
    if found.st_mode & 0o077:
        return f"{folder} is open to other users (mode {stat.S_IMODE(found.st_mode):o})."
    return ""
