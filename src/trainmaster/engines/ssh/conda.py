"""An environment of conda packages at another path: its packages say which of their files hold the path, and how."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments.prefix import CONDA_LOCK
from trainmaster.job.errors import EnvironmentException


@dataclass(frozen=True)
class Holding:
    """How a file holds the path of its environment."""

    is_binary: bool
    room: int
    """For how long a path the package was made."""


def is_conda(folder: Path) -> bool:
    """Whether an environment has conda packages, and with them a Python of its own."""
    return (folder / CONDA_LOCK).exists()


def holdings(folder: Path) -> Mapping[str, Holding]:
    """The files that hold the path of the environment, by their paths in it."""
    found = {}
    for record in (folder / "conda-meta").glob("*.json"):
        for each in json.loads(record.read_bytes())["paths_data"]["paths"]:
            if each.get("prefix_placeholder"):
                found[each["_path"]] = Holding(each.get("file_mode") == "binary", len(each["prefix_placeholder"]))
    return found


def check_room(held: Mapping[str, Holding], there: str, host: str) -> None:
    """Refuses a path that is longer than programs have room for."""
    room = min((each.room for each in held.values() if each.is_binary), default=len(there))
    if len(there.encode()) > room:
        raise EnvironmentException(
            f"the conda packages of the environment cannot lie at {there} on host {host}",
            cause=f"Their programs have room for a path of {room} letters, and this one has {len(there.encode())}.",
            hint="Say a shorter folder= (or shared_folder=) where the target is made.",
        )


def moved(data: bytes, holding: Holding, here: str, there: str) -> bytes:
    """The contents of a file for another path. In binaries nothing may change its place: the rest is filled with zeros.

    >>> moved(b"in /here/lib.", Holding(False, 255), "/here", "/over/there")
    b'in /over/there/lib.'
    >>> moved(b"x/here/lib\\0\\0\\0\\0\\0\\0\\0y", Holding(True, 255), "/here", "/there")
    b'x/there/lib\\x00\\x00\\x00\\x00\\x00\\x00y'
    """
    old, new = here.encode(), there.encode()
    if not holding.is_binary:
        return data.replace(old, new)

    def replaced(found: re.Match[bytes]) -> bytes:
        return found.group().rstrip(b"\0").replace(old, new).ljust(len(found.group()), b"\0")

    return re.sub(re.escape(old) + rb"[^\0]*\0+", replaced, data)
