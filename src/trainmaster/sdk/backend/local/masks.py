"""Hides secrets in the logs of a run: those that its script asked for."""

from __future__ import annotations

import os
from functools import lru_cache

from trainmaster.sdk.backend.local.connection import call_once
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.redaction import Mask

_NOTHING = Mask()


def mask_of(folder: RunFolder) -> Mask:
    """The current mask of a run. The dispatcher is asked only if the script has asked for a secret."""
    try:
        found = os.stat(folder.secrets)
    except OSError:
        return _NOTHING
    return _fetch_mask(folder, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=64)
def _fetch_mask(folder: RunFolder, version: tuple[int, ...]) -> Mask:
    return Mask(call_once(WorkspaceFolder(folder.path.parent.parent), "secrets.masks", run_id=folder.path.name))
