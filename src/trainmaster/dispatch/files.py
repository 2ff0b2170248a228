"""The files of a run that has ended: from its working folder into the run."""

from __future__ import annotations

from trainmaster.folders import RunFolder


def collect(folder: RunFolder) -> None:
    """Moves outputs/ and logs/ of the working folder to the run's files. Harmless to repeat."""
    for name in ("outputs", "logs"):
        source, place = folder.code / name, folder.files / name
        if not source.is_dir() or source.is_symlink():
            continue
        if place.is_symlink():
            place.unlink()
        if not place.exists():
            source.rename(place)
