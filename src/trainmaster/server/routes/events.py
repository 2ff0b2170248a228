"""What happens to a run, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial

from trainmaster.sdk.backend.backend import JOURNALS, LOGS
from trainmaster.server.api.table import WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.feeds.run_feeds import Patience, RunFeed
from trainmaster.server.files.run_place import RunPlace
from trainmaster.server.files.sending import Event, EventStream
from trainmaster.server.permissions import Permission
from trainmaster.server.routes.run_files import find_run

_KINDS = frozenset({LOGS, JOURNALS})
# A script that logs all the time causes no more events than this allows.
_PAUSE_SECONDS = 0.05
_STREAM_SECONDS = 1800.0


async def follow_events(call: Call, run_id: str, files: str = "") -> EventStream:
    """Follow a run to its end.

    Events: `state` with the state now and at each change; `files` when a file of the kinds named in `files` (`logs`,
    `journals`, or both with a comma between them) may have grown, the first time at once.
    """
    kinds = frozenset(kind for kind in files.split(",") if kind)
    if not kinds <= _KINDS:
        raise refuse(400, f"{files[:60]!r} are not kinds of files", hint="Kinds: logs, journals.")
    place = await find_run(call, run_id)
    return EventStream(_follow(call, place, kinds))


async def _follow(call: Call, place: RunPlace, kinds: frozenset[str]) -> AsyncGenerator[Event]:
    with call.parts.feeds.follow(place.folder, call) as feed:
        patience = Patience(call.parts.stopping, _STREAM_SECONDS)
        number, version = 0, 0
        while True:
            states, number = feed.states_since(number)
            if feed.version(kinds) != version and not feed.has_ended:
                version = feed.version(kinds)
                yield Event("files", {"kinds": sorted(kinds)})
            for state in states:
                yield Event("state", state)
                if state["ended"]:
                    return
            await asyncio.sleep(_PAUSE_SECONDS)
            if not await feed.wait(partial(_has_news, feed, kinds, number, version), patience):
                return


def _has_news(feed: RunFeed, kinds: frozenset[str], number: int, version: int) -> bool:
    return feed.version(kinds) != version or bool(feed.states_since(number)[0])


ROUTES = (
    Route(
        "GET",
        f"{WORKSPACE}/runs/{{run_id}}/events",
        follow_events,
        Permission.READ,
        "Follow a run by server-sent events",
        "runs",
        media_type="text/event-stream",
        statuses=(404,),
    ),
)
