"""Which pods an attempt has, in a file beside the folders of its nodes: written before they are created."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json, write_json

_NOTE = "kubernetes.json"


@dataclass(frozen=True)
class GangNote:
    """The pods of an attempt."""

    gang: int
    """The attempt for which they were created."""
    count: int
    is_released: bool = False
    """Whether they are no longer needed."""


def read_note(folder: RunFolder) -> GangNote | None:
    """The note of an attempt; None if it has none."""
    if folder.attempt < 1:
        return None
    found = read_json(folder.node(0).parent / _NOTE)
    if found is None:
        return None
    return GangNote(int(found["gang"]), int(found["count"]), bool(found.get("released")))


def write_note(folder: RunFolder, note: GangNote) -> None:
    """Writes the note of an attempt, unless its run was deleted: pods may be released long after the end of a run."""
    if not folder.path.exists():
        return
    path = folder.node(0).parent / _NOTE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"version": 1, "gang": note.gang, "count": note.count, "released": note.is_released})
