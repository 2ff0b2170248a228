"""What a snapshot of a folder would contain, and what it ignores. Only names and sizes are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trainmaster.snapshots.limits import MEGABYTE, effective_limits, is_within, measure, too_large
from trainmaster.snapshots.tree import Folder, Walk

_LARGEST = 10
# The limits of `take_snapshot`.
_MAX_BYTES = 300 * MEGABYTE
_MAX_FILES = 100_000


def source_as_json(source: str, workspace: Path) -> dict[str, Any]:
    """{"folder", "files", "bytes", "largest": [{"path", "bytes"}], "ignored": [path]}; an error beyond the limits."""
    root = os.path.realpath(source)
    inside = str(workspace).startswith(root.rstrip("/") + "/")
    excluded = os.fsencode(os.path.relpath(workspace, root)) if inside else None
    folders = Walk(os.fsencode(root), excluded, {}, frozenset()).folders()
    amount = measure(folders)
    limits = effective_limits(_MAX_BYTES, _MAX_FILES, os.environ)
    if not is_within(amount, limits):
        raise too_large(root, folders, amount, limits)
    return {
        "folder": root,
        "files": amount.files,
        "bytes": amount.bytes,
        "largest": [{"path": path, "bytes": count} for path, count in largest(folders)],
        "ignored": find_ignored(root, folders),
    }


def largest(folders: list[Folder]) -> list[tuple[str, int]]:
    """The largest files, by path and size."""
    found = [
        (os.fsdecode(folder.path_of(name)), signature[3])
        for folder in folders
        for name, signature in zip(folder.names, folder.signatures, strict=True)
    ]
    return sorted(found, key=lambda item: (-item[1], item[0]))[:_LARGEST]


def find_ignored(root: str, folders: list[Folder]) -> list[str]:
    """The paths in the folders that a snapshot ignores. An ignored folder is one path, with a slash at its end."""
    found = []
    for folder in folders:
        path = os.path.join(os.fsencode(root), folder.path)
        if not folder.kept:
            found.append(os.fsdecode(folder.path) + "/")
            continue
        taken = {*folder.names, *folder.subfolders}
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name not in taken:
                    mark = "/" if entry.is_dir(follow_symlinks=False) else ""
                    found.append(os.fsdecode(folder.path_of(entry.name)) + mark)
    return sorted(found)
