"""Removes a workspace, but no other files in its folder."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainmaster.job.errors import WorkspaceException
from trainmaster.sdk.backend.local.connection import LocalConnection, stop_dispatcher
from trainmaster.sdk.backend.local.database import drop_database
from trainmaster.shared.folders import WorkspaceFolder, key_file
from trainmaster.shared.identity import read_identity

_FOLDERS = (
    "blobs",
    "snapshots",
    "environments",
    "wheels",
    "kits",
    "runs",
    "models",
    "services",
    "images",
    "packages",
    "transfers",
)
# The data of the user.
_DATA = ("datastore", "filestore", "mlflow")
_FILES = ("trainmaster.db*", "database.json", "dispatcher.*", "dispatcher-*", "vm-sizes.json")


def remove_workspace(folder: WorkspaceFolder, client: LocalConnection, keep_data: bool) -> None:
    """Stops the dispatcher and removes its files. Refused while runs are active."""
    identity = read_identity(folder)
    status = client.call("status")
    active = status["active"]
    if active:
        raise WorkspaceException(
            f"workspace '{identity['name']}' has {len(active)} runs that have not ended, such as {active[0]['id']}",
            hint="Cancel them, or wait for them.",
        )
    services = client.call("services.list")
    if services:
        raise WorkspaceException(
            f"workspace '{identity['name']}' has {len(services)} services, such as {services[0]['name']}",
            hint="Delete them first: 'trainmaster services delete NAME'.",
        )
    client.close()
    stop_dispatcher(folder, int(status["pid"]))
    # First of all: without its address, nobody would find it again.
    drop_database(folder)
    try:
        # First, so that the folder is not a workspace any more even if the rest fails.
        folder.identity.unlink()
        for name in (*_FOLDERS, *(() if keep_data else _DATA)):
            _remove_tree(folder.path / name)
        for name in _DATA:
            with contextlib.suppress(OSError):
                # Removes only an empty folder.
                (folder.path / name).rmdir()
        for pattern in _FILES:
            for path in folder.path.glob(pattern):
                path.unlink()
        key_file(identity["id"]).unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceException(f"not all of {folder.path} could be removed", cause=str(error)) from None
    with contextlib.suppress(OSError):
        # Removes the folder only if it is empty.
        folder.path.rmdir()


def _remove_tree(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_writable_first)


def _writable_first(function: Callable[..., Any], path: str, error: Any) -> None:
    """Makes the path writable first: packages contain folders that even their owner cannot write to."""
    os.chmod(os.path.dirname(path), 0o700)
    os.chmod(path, 0o700)
    function(path)
