"""The files of a run that has ended: from its working folder into the run."""

from __future__ import annotations

import os

from trainmaster.folders import RunFolder


def collect(folder: RunFolder) -> None:
    """Moves outputs/ and logs/ of the working folder to the run's files. Harmless to repeat."""
    for name in ("outputs", "logs"):
        source, place = os.path.join(folder.code, name), os.path.join(folder.files, name)
        if not os.path.isdir(source) or os.path.islink(source):
            continue
        if os.path.islink(place):
            os.unlink(place)
        if not os.path.exists(place):
            os.rename(source, place)
