"""What changes in a workspace, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.dispatchers import Dispatchers
from trainmaster.server.feeds.run_feeds import Patience
from trainmaster.server.files.sending import Event, EventStream
from trainmaster.server.permissions import Permission
from trainmaster.shared.folders import WorkspaceFolder

# Many runs that change all the time cause no more events than this allows.
_PAUSE_SECONDS = 0.1
_STREAM_SECONDS = 1800.0
_LONGEST_VERSION = 100


async def follow_changes(call: Call) -> EventStream:
    """Follow the runs of a workspace.

    Events: `changes` as the operation `workspace.changes` answers; the first one says where the stream begins. Their
    ids are versions; the header `Last-Event-ID` continues there. If `whole` is false, changes may be missing, and what
    is shown has to be read again.
    """
    since = call.request.headers.get("last-event-id", "")[:_LONGEST_VERSION]
    return EventStream(_follow(call, since))


async def _ask(dispatchers: Dispatchers, folder: WorkspaceFolder, since: str, seconds: float) -> dict[str, Any]:
    arguments = {"since": since, "seconds": seconds}
    found: dict[str, Any] = await dispatchers.call(folder, "workspace.changes", arguments)
    return found


async def _follow(call: Call, since: str) -> AsyncGenerator[Event]:
    folder = call.workspace.folder
    ask = partial(_ask, call.parts.dispatchers, folder)
    with call.parts.changes.follow(folder.path, ask) as feed:
        patience = Patience(call.parts.stopping, _STREAM_SECONDS)
        if not await feed.wait("", patience):
            return
        if not since:
            since = feed.version
            yield Event("changes", {"version": since, "whole": True, "runs": []}, since)
        while True:
            seen = feed.version
            changes = feed.find(since)
            if changes is None and since != seen:
                # The client comes back, or is ahead of what this server has been told.
                changes = await ask(since, 0.0)
            if changes is not None:
                since = changes["version"]
                if changes["runs"] or not changes["whole"]:
                    yield Event("changes", changes, since)
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
            if not await feed.wait(seen, patience):
                return


ROUTES = (
    Route(
        "GET",
        f"{WORKSPACE}/changes",
        follow_changes,
        Permission.READ,
        "Follow the runs of a workspace by server-sent events",
        "runs",
        media_type="text/event-stream",
    ),
)
