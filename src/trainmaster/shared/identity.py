"""workspace.json: the id and the name of a workspace, and what else is known about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainmaster.job.agent import durable
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.folders import WorkspaceFolder


def read_identity(folder: WorkspaceFolder) -> dict[str, Any]:
    """The facts in workspace.json."""
    try:
        identity = json.loads(folder.identity.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise WorkspaceException(
            f"there is no workspace in {folder.path}",
            hint="Create it with 'trainmaster workspace create' or Workspace.create(...), or check TRAINMASTER_HOME.",
        ) from None
    except (OSError, ValueError) as error:
        raise WorkspaceException(f"{folder.identity} cannot be read", cause=str(error)) from None
    if not isinstance(identity, dict) or not {"name", "id"} <= identity.keys():
        raise WorkspaceException(f"{folder.identity} is not the identity of a workspace")
    return identity


def change_identity(folder: WorkspaceFolder, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes facts in workspace.json and returns all of them."""
    identity = {**read_identity(folder), **changes}
    try:
        durable.write(folder.identity, as_text(identity))
    except OSError as error:
        raise WorkspaceException(f"{folder.identity} cannot be written", cause=str(error)) from None
    return identity


def as_text(identity: Mapping[str, Any]) -> bytes:
    """The contents of workspace.json."""
    return (json.dumps(identity, indent=1) + "\n").encode()
