"""The files of a run that has ended: from its working folder into the run."""

from __future__ import annotations

import os

from trainmaster import beneath
from trainmaster.folders import RunFolder


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
