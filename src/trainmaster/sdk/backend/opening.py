"""Chooses the backend of a workspace: by its folder, or by its server and name."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trainmaster.sdk.backend.backend import Backend
from trainmaster.shared.folders import WorkspaceFolder

_SERVER = "TRAINMASTER_SERVER"


@dataclass(frozen=True)
class RemotePlace:
    """A workspace on a server. Without a name it is the only one there, or `default`."""

    server: str
    name: str = ""


Place = WorkspaceFolder | RemotePlace


def open_backend(place: Place) -> Backend:
    """The backend of the workspace at this place."""
    # Each is loaded only where it is used.
    if isinstance(place, WorkspaceFolder):
        from trainmaster.sdk.backend.local.backend import LocalBackend

        return LocalBackend(place)
    from trainmaster.sdk.backend.remote.opening import open_remote

    return open_remote(place.server, place.name)


def read_server_variable() -> str:
    """The server of `TRAINMASTER_SERVER`; empty if there is none.

    In a job, the variable is for the job's own requests: the workspaces of a script are what they are without it.
    """
    return "" if os.environ.get("TRAINMASTER_RUN_ID") else os.environ.get(_SERVER, "").strip()


def read_name_variable() -> str:
    """The name of the workspace in `TRAINMASTER_WORKSPACE`; empty if there is none."""
    return os.environ.get("TRAINMASTER_WORKSPACE", "").strip()
