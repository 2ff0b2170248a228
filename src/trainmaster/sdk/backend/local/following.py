"""Following runs and their logs: the one loop behind `wait_for_completion`, `trainmaster logs -f` and widgets.

The loop says when to look again. What is shown then is up to the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from trainmaster.sdk.backend.backend import RunNews
from trainmaster.sdk.backend.local.connection import Watch
from trainmaster.shared.file_events import FileEvents, Readable, ready
from trainmaster.shared.folders import WorkspaceFolder

News = TypeVar("News", covariant=True)

# How often to look at files where the system does not report that they grow, and for folders that do not exist yet.
_LOOK_SECONDS = 0.2


class Source(Protocol[News]):
    """Where news comes from; readable when there is some."""

    def fileno(self) -> int: ...

    def next(self) -> News: ...


def follow(
    source: Source[News] | None = None, folders: Sequence[Path] = (), *, hold: float = 0.0, every: float | None = None
) -> Iterator[News | None]:
    """Yields each piece of news, and None when a file in `folders` may have grown: the first time at once.

    Folders may appear later. Growing files are reported at most once in `hold` seconds, news at once. With `every`,
    None is yielded at least that often. The loop does not end by itself; the caller leaves it.
    """
    with FileEvents() as events:
        news: News | None = None
        while True:
            # Before the caller reads: what is written after its look is reported.
            unwatched = [folder for folder in folders if not events.watch(folder)]
            yield news
            news = _wait(source, events, unwatched, hold, every)


def _wait(
    source: Source[News] | None, events: FileEvents, unwatched: Sequence[Path], hold: float, every: float | None
) -> News | None:
    sources: list[Readable] = [] if source is None else [source]
    if source is not None and hold and ready(hold, source):
        return source.next()
    end = None if every is None else time.monotonic() + every
    while True:
        found = ready(_seconds_to_wait(end, unwatched), *sources, *([events] if events.works else []))
        if events in found:
            events.clear()
        if source is not None and source in found:
            return source.next()
        has_ended = end is not None and time.monotonic() >= end
        # A folder that is here now either has just appeared or cannot be watched: both have to be looked at.
        if events in found or has_ended or any(folder.is_dir() for folder in unwatched):
            return None


def _seconds_to_wait(end: float | None, unwatched: Sequence[Path]) -> float | None:
    rest = None if end is None else max(0.0, end - time.monotonic())
    if not unwatched:
        return rest
    return _LOOK_SECONDS if rest is None else min(rest, _LOOK_SECONDS)


def follow_run(
    workspace: WorkspaceFolder,
    run_id: str,
    folders: Sequence[Path] = (),
    *,
    hold: float = 0.0,
    every: float | None = None,
) -> Iterator[RunNews | None]:
    """As `follow` does, until the run has ended. The last that is yielded is the news of its end."""
    with Watch(workspace, run_id) as watch:
        for news in follow(watch, folders, hold=hold, every=every):
            yield news
            if news is not None and news["ended"]:
                return
