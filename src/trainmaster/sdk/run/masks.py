"""What has to be hidden when the logs of a run are shown: the secrets that its script asked for."""

from __future__ import annotations

import os
from functools import lru_cache

from trainmaster.sdk.connection import call_once
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.redaction import Mask

_NOTHING = Mask()


def mask_of(folder: RunFolder) -> Mask:
    """The mask of a run as of now. Nobody is asked for a run that asked for no secret."""
    try:
        found = os.stat(folder.secrets)
    except OSError:
        return _NOTHING
    return _asked(folder, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=64)
def _asked(folder: RunFolder, version: tuple[int, ...]) -> Mask:
    return Mask(call_once(WorkspaceFolder(folder.path.parent.parent), "secrets.masks", run_id=folder.path.name))
