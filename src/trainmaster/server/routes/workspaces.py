"""Workspaces of the server: list, create, describe, change, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import TrainmasterError
from trainmaster.sdk.backend.local.connection import LocalConnection
from trainmaster.sdk.backend.local.removal import remove_workspace
from trainmaster.sdk.workspace.files import undo_workspace
from trainmaster.server.api.table import API, WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.permissions import Permission
from trainmaster.server.workspaces import ServedWorkspace
from trainmaster.shared.identity import change_identity


@dataclass(frozen=True)
class WorkspaceAnswer:
    """A workspace of the server."""

    name: str
    id: str
    created_at: float
    facts: Mapping[str, Any]
    """What else is in workspace.json: tags, description, v1's subscription and resource group."""


@dataclass(frozen=True)
class WorkspacesAnswer:
    """The workspaces that the caller may read."""

    workspaces: tuple[WorkspaceAnswer, ...]


async def list_workspaces(call: Call) -> WorkspacesAnswer:
    """The workspaces that the caller may read."""
    served = await asyncio.to_thread(call.parts.workspaces.list)
    readable = [each for each in served if call.caller.may(Permission.READ, each.name)]
    return WorkspacesAnswer(tuple([await asyncio.to_thread(_describe, each) for each in readable]))


async def create_workspace(call: Call, name: str, facts: Mapping[str, Any] | None = None) -> WorkspaceAnswer:
    """Creates a workspace below the server's root."""
    served = await asyncio.to_thread(call.parts.workspaces.create, name, _own_facts(facts or {}))
    try:
        # The first call creates the database, so a workspace that cannot be used raises here.
        await call.parts.dispatchers.call(served.folder, "status", {})
    except TrainmasterError:
        if served.folder.database_address.exists():
            undo_workspace(served.folder)
            call.parts.workspaces.forget(name)
        raise
    return await asyncio.to_thread(_describe, served)


async def get_workspace(call: Call) -> WorkspaceAnswer:
    """One workspace."""
    return await asyncio.to_thread(_describe, call.workspace)


async def change_workspace(call: Call, facts: Mapping[str, Any]) -> WorkspaceAnswer:
    """Sets the facts that are given; the others stay."""
    await asyncio.to_thread(change_identity, call.workspace.folder, _own_facts(facts))
    return await asyncio.to_thread(_describe, call.workspace)


async def delete_workspace(call: Call, keep_data: bool = False) -> None:
    """Deletes a workspace with all its runs. Refused while runs are active."""
    folder = call.workspace.folder
    await call.parts.dispatchers.forget(folder)
    await asyncio.to_thread(remove_workspace, folder, LocalConnection(folder), keep_data)
    call.parts.workspaces.forget(call.workspace.name)
    await call.parts.identity.run(call.parts.identity.members.remove_workspace, call.workspace.name)


_FIXED = ("id", "name", "created_at", "database")


def _own_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What clients may set: not what the workspace is found by."""
    return {key: value for key, value in facts.items() if key not in _FIXED}


def _describe(served: ServedWorkspace) -> WorkspaceAnswer:
    identity = served.identity()
    return WorkspaceAnswer(
        served.name, str(identity["id"]), float(identity.get("created_at", 0.0)), _own_facts(identity)
    )


def workspace_rows() -> Iterator[Route]:
    """The routes of workspaces themselves."""
    tag, signed_in = "workspaces", Permission.SIGNED_IN
    every = f"{API}/workspaces"
    yield Route("GET", every, list_workspaces, signed_in, "The workspaces that you may read", tag)
    yield Route("POST", every, create_workspace, Permission.ADMINISTER, "Create a workspace", tag)
    yield Route("GET", WORKSPACE, get_workspace, Permission.READ, "One workspace", tag)
    yield Route("PATCH", WORKSPACE, change_workspace, Permission.OWN, "Change facts of a workspace", tag)
    yield Route("DELETE", WORKSPACE, delete_workspace, Permission.ADMINISTER, "Delete a workspace", tag)
