"""Opens, lists and creates workspaces on a server."""

from __future__ import annotations

from typing import Any

from trainmaster.job.errors import WorkspaceException
from trainmaster.sdk.backend.remote.address import split_workspace
from trainmaster.sdk.backend.remote.backend import RemoteBackend
from trainmaster.sdk.backend.remote.server import Server


def open_remote(address: str, name: str = "") -> RemoteBackend:
    """The workspace with this name, or with the name in the address, on a server."""
    place, named = split_workspace(address)
    server = Server(place)
    return RemoteBackend(server, name or named or server.choose_workspace())


def list_names(address: str) -> list[str]:
    """The names of the workspaces that the user may see on a server."""
    return sorted(str(each["name"]) for each in Server(split_workspace(address)[0]).workspaces())


def create_remote(address: str, name: str, facts: dict[str, Any], exist_ok: bool) -> None:
    """Creates a workspace on a server."""
    server = Server(split_workspace(address)[0])
    if name in (each["name"] for each in server.workspaces()):
        if exist_ok:
            return
        raise WorkspaceException(
            f"{server.address} already has a workspace '{name}'", hint="Give exist_ok=True to open it."
        )
    server.create_workspace(name, facts)
