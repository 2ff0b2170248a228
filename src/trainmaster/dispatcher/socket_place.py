"""The path of the dispatcher's socket: in the workspace, or in a private folder if that path is too long."""

from __future__ import annotations

import os
from pathlib import Path

from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.folders import WorkspaceFolder, fits_socket, socket_folders
from trainmaster.shared.private import make_private, why_not_private


def make_place(folder: WorkspaceFolder) -> Path:
    """The path for the socket. An old socket is removed: the caller owns the workspace, so nobody listens there."""
    name = folder.socket_name
    if fits_socket(name):
        name.unlink(missing_ok=True)
        return name
    place = _place_before(name) or _new_place(folder)
    place.unlink(missing_ok=True)
    _link(name, place)
    return place


def _place_before(name: Path) -> Path | None:
    """The path that the previous dispatcher used, if it is still private: running jobs know it."""
    try:
        place = Path(os.readlink(name))
        return place if place.is_absolute() and not why_not_private(place.parent) else None
    except OSError:
        return None


def _new_place(folder: WorkspaceFolder) -> Path:
    refused = []
    for parent in socket_folders():
        place = parent / folder.name_short_socket()
        if not fits_socket(place):
            continue
        try:
            make_private(parent)
            problem = why_not_private(parent)
        except OSError as error:
            problem = f"{parent}: {error.strerror}"
        if not problem:
            return place
        refused.append(problem)
    raise WorkspaceException(
        f"there is no safe place for the socket of {folder.path}",
        cause="\n".join(refused) or "The path of the temporary folder is too long.",
        hint="Set XDG_RUNTIME_DIR or TMPDIR to a folder of your own with a short path, or use a workspace with a "
        "shorter path.",
    )


def _link(name: Path, place: Path) -> None:
    """Link to the socket for clients, which find the old path or the new one at any time."""
    temporary = name.with_name(f".{name.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(place)
    temporary.rename(name)
