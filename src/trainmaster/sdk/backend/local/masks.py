"""Hides secrets in the logs of a run: those that its script asked for, and on a server the token of its job."""

from __future__ import annotations

import os
from functools import lru_cache

from trainmaster.sdk.backend.local.connection import call_once
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.redaction import Mask
from trainmaster.shared.run_tokens import read_served, sign_run

_NOTHING = Mask()


class UnknownMaskError(Exception):
    """Only the dispatcher knows what has to be hidden."""


def mask_of(folder: RunFolder) -> Mask:
    """The current mask of a run. The dispatcher is asked only if the script has asked for a secret."""
    try:
        return find_known_mask(folder)
    except UnknownMaskError:
        found = os.stat(folder.secrets)
    return _fetch_mask(folder, (found.st_mtime_ns, found.st_size, found.st_ino), _find_token(folder))


def find_known_mask(folder: RunFolder) -> Mask:
    """The current mask of a run whose script has asked for no secret. Raises UnknownMaskError for another run."""
    # The file is never removed before the run is.
    if os.path.exists(folder.secrets):
        raise UnknownMaskError
    token = _find_token(folder)
    return _mask_token(token) if token else _NOTHING


def _find_token(folder: RunFolder) -> str:
    """The token of the job, which can fetch secrets while the run is active; empty without a server."""
    served = read_served(_workspace_of(folder))
    return sign_run(folder.path.name, served.key) if served else ""


@lru_cache(maxsize=64)
def _workspace_of(folder: RunFolder) -> WorkspaceFolder:
    return WorkspaceFolder(folder.path.parent.parent)


@lru_cache(maxsize=64)
def _mask_token(token: str) -> Mask:
    return Mask([token])


@lru_cache(maxsize=64)
def _fetch_mask(folder: RunFolder, version: tuple[int, ...], token: str) -> Mask:
    values = call_once(_workspace_of(folder), "secrets.masks", run_id=folder.path.name)
    return Mask([*values, *([token] if token else [])])
