"""Environments of conda packages at another path. The packages say which of their files hold the path, and how."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.environments.prefix import CONDA_LOCK
from trainmaster.job.errors import EnvironmentException


@dataclass(frozen=True)
class Placeholder:
    """How a file holds the path of its environment."""

    is_binary: bool
    room: int
    """The length of the longest path that fits."""


def is_conda(folder: Path) -> bool:
    """Whether an environment has conda packages, which include its Python."""
    return (folder / CONDA_LOCK).exists()


def placeholders(folder: Path) -> Mapping[str, Placeholder]:
    """The files that hold the path of the environment, by their paths in it."""
    found = {}
    for record in (folder / "conda-meta").glob("*.json"):
        for each in json.loads(record.read_bytes())["paths_data"]["paths"]:
            if each.get("prefix_placeholder"):
                is_binary = each.get("file_mode") == "binary"
                found[each["_path"]] = Placeholder(is_binary, len(each["prefix_placeholder"]))
    return found


def check_path_length(found: Mapping[str, Placeholder], there: str, host: str) -> None:
    """Raises an error for a path that is longer than programs have room for."""
    room = min((each.room for each in found.values() if each.is_binary), default=len(there))
    if len(there.encode()) > room:
        raise EnvironmentException(
            f"the conda packages of the environment cannot be placed at {there} on {host}",
            cause=f"Their programs have room for a path of {room} characters; this one has {len(there.encode())}.",
            hint="Choose a shorter folder= (or shared_folder=) for the target.",
        )


def replace_path(data: bytes, placeholder: Placeholder, here: str, there: str) -> bytes:
    """The contents of a file for another path. In binaries nothing may move: the path is padded with zeros.

    >>> replace_path(b"in /here/lib.", Placeholder(False, 255), "/here", "/over/there")
    b'in /over/there/lib.'
    >>> replace_path(b"x/here/lib\\0\\0\\0\\0\\0\\0\\0y", Placeholder(True, 255), "/here", "/there")
    b'x/there/lib\\x00\\x00\\x00\\x00\\x00\\x00y'
    """
    old, new = here.encode(), there.encode()
    if not placeholder.is_binary:
        return data.replace(old, new)

    def replace_text(match: re.Match[bytes]) -> bytes:
        return match.group().rstrip(b"\0").replace(old, new).ljust(len(match.group()), b"\0")

    return re.sub(re.escape(old) + rb"[^\0]*\0+", replace_text, data)
