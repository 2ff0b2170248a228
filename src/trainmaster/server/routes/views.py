"""Saved views: what somebody wants to look at again, alone or with everybody who may read the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import HttpError, refuse
from trainmaster.server.permissions import Permission
from trainmaster.shared.records import SavedView

_VIEWS = f"{WORKSPACE}/views"
_TAG = "views"


@dataclass(frozen=True)
class SavedViews:
    """The caller's views, and the shared ones of others."""

    views: tuple[SavedView, ...]


async def list_views(call: Call, page: str | None = None) -> SavedViews:
    """The caller's views, and the shared ones of others."""
    return SavedViews(await call.ask("views.list", owner=call.caller.name, page=page))


async def save_view(call: Call, page: str, name: str, query: str, is_shared: bool = False) -> Any:
    """Save a view; it replaces the caller's view of the same page and name."""
    if is_shared and not _may(call, Permission.CONTRIBUTE):
        raise refuse(403, "you may not share a view", cause="It needs the role contributor in the workspace.")
    owner = call.caller.name
    return await call.ask("views.put", owner=owner, page=page, name=name, query=query, is_shared=is_shared)


async def delete_view(call: Call, view_id: str) -> None:
    """Delete a view of the caller, or a shared one as an owner of the workspace."""
    found = await call.ask("views.get", id=view_id)
    is_mine = found is not None and found["owner"] == call.caller.name
    # A private view of somebody else is as if it did not exist.
    if found is None or not (is_mine or found["is_shared"]):
        raise _missing_view(view_id)
    if not is_mine and not _may(call, Permission.OWN):
        cause = f"It belongs to {found['owner']}; others need the role owner in the workspace."
        raise refuse(403, "you may not delete this view", cause=cause)
    await call.ask("views.delete", id=view_id)


def _may(call: Call, permission: Permission) -> bool:
    return call.caller.may(permission, call.names["workspace"])


def _missing_view(view_id: str) -> HttpError:
    return refuse(404, f"there is no view '{view_id[:60]}' in this workspace")


ROUTES = (
    Route("GET", _VIEWS, list_views, Permission.READ, "Your saved views, and the shared ones", _TAG),
    Route(
        "POST", _VIEWS, save_view, Permission.READ, "Save a view for yourself or to share it", _TAG, answer=SavedView
    ),
    Route("DELETE", f"{_VIEWS}/{{view_id}}", delete_view, Permission.READ, "Delete a saved view", _TAG),
)
