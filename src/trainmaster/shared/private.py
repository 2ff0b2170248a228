"""Folders and files that only one user can access, whatever the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.shared.folders import home

_MODE = 0o700


def make_private(folder: Path) -> None:
    """Create a folder that only its owner can enter. An existing folder stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mkdir(folder, _MODE)
    except FileExistsError:
        return
    # A umask may have taken bits away.
    os.chmod(folder, _MODE)


def make_home() -> None:
    """Create the user's folder for Trainmaster, if it does not exist."""
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
    """Why users other than this one (or `users`) can change a folder: a sentence, or an empty text if none can."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder."
    if found.st_uid not in (users or (os.geteuid(),)):
        return f"{folder} belongs to another user (user id {found.st_uid})."
    if found.st_mode & 0o077:
        return f"{folder} is open to other users (mode {stat.S_IMODE(found.st_mode):o})."
    return ""
