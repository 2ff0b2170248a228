"""Following runs on a server, and asking operations that wait for a change."""

from __future__ import annotations

import time
from collections.abc import Iterator

from trainmaster.sdk.backend.backend import RunNews
from trainmaster.sdk.backend.remote.connection import RemoteConnection, as_news, open_events
from trainmaster.sdk.backend.remote.events import EventStream


def follow_run(
    connection: RemoteConnection, run_id: str, kinds: tuple[str, ...], *, hold: float, every: float | None
) -> Iterator[RunNews | None]:
    """Yields each new state of a run, and None when files of these kinds may have grown: the first time at once."""
    with open_events(connection, run_id, kinds) as events:
        yield None
        has_grown = False
        while True:
            news, has_grown = _wait(events, has_grown, hold, every)
            yield news
            if news is not None and news["ended"]:
                return


def _wait(events: EventStream, has_grown: bool, hold: float, every: float | None) -> tuple[RunNews | None, bool]:
    """The next state, or None for files; and whether files have grown that are not reported yet."""
    now = time.monotonic()
    held = now + hold
    end = None if every is None else now + every
    while True:
        now = time.monotonic()
        if has_grown and now >= held:
            return None, False
        if end is not None and now >= end:
            return None, False
        limits = [each - now for each in ((held,) if has_grown else ()) + ((end,) if end is not None else ())]
        event = events.next(min(limits) if limits else None)
        if event is None:
            continue
        news = as_news(event)
        if news is not None:
            return news, has_grown
        has_grown = True
