"""Hides secrets in the logs of a run: those that its script asked for, and on a server the token of its job."""

from __future__ import annotations

import os
from functools import lru_cache

from trainmaster.sdk.backend.local.connection import call_once
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.redaction import Mask
from trainmaster.shared.run_tokens import read_served, sign_run

_NOTHING = Mask()


def mask_of(folder: RunFolder) -> Mask:
    """The current mask of a run. The dispatcher is asked only if the script has asked for a secret."""
    served = read_served(WorkspaceFolder(folder.path.parent.parent))
    # While the run is active, its token can fetch secrets.
    token = sign_run(folder.path.name, served.key) if served else ""
    try:
        found = os.stat(folder.secrets)
    except OSError:
        return _mask_token(token) if token else _NOTHING
    return _fetch_mask(folder, (found.st_mtime_ns, found.st_size, found.st_ino), token)


@lru_cache(maxsize=64)
def _mask_token(token: str) -> Mask:
    return Mask([token])


@lru_cache(maxsize=64)
def _fetch_mask(folder: RunFolder, version: tuple[int, ...], token: str) -> Mask:
    values = call_once(WorkspaceFolder(folder.path.parent.parent), "secrets.masks", run_id=folder.path.name)
    return Mask([*values, *([token] if token else [])])
