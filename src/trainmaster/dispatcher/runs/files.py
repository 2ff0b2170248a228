"""The files of a run that has ended: from its working folder into the run."""

from __future__ import annotations

import os

from trainmaster.job.agent import durable
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder


def collect(folder: RunFolder) -> None:
    """Moves outputs/ and logs/ of the working folder to the run's files. Harmless to repeat."""
    for name in ("outputs", "logs"):
        place = os.path.join(folder.files, name)
        # A script may have put a link to anywhere in the place of its folders.
        if not beneath.is_folder(folder.path, f"code/{name}") or not beneath.is_folder(folder.path, "files"):
            continue
        if os.path.islink(place):
            os.unlink(place)
        if not os.path.exists(place):
            beneath.rename(folder.path, f"code/{name}", f"files/{name}")


def flush(folder: RunFolder) -> None:
    """Returns when the run's files are on the disk: those of a run that has ended survive a power cut."""
    if not folder.path.is_dir():
        return
    with os.scandir(folder.path) as entries:
        notes = [entry.path for entry in entries if entry.is_file(follow_symlinks=False)]
    durable.flush_below(folder.files, folder.path.parent, folder.path, *notes)
