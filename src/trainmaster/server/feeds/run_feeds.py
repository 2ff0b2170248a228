"""What happens to runs, for all clients that follow them: one watch per run, one place where files are watched.

Clients ask what is new since they last looked. Nothing is queued for them, so a slow client costs no memory.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from anyio import to_thread

from trainmaster.sdk.backend.backend import JOURNALS, LOGS, RunNews
from trainmaster.server.feeds.sharing import SharedFeeds
from trainmaster.server.stopping import Stopping
from trainmaster.shared.file_events import FolderEvents
from trainmaster.shared.folders import RunFolder

# Files on other machines cause no events, and a folder may not exist yet: they are looked at so often.
_LOOK_SECONDS = 1.0
# Of a run with many retries, older states are of no use to a client.
_MOST_STATES = 1000


class States(Protocol):
    """Where the states of runs come from: the dispatcher of a workspace."""

    def watch(self, run_id: str) -> AsyncIterator[RunNews]:
        """The state of a run now and at each change, up to its end. Reconnects by itself."""


class Patience:
    """How long a stream lasts: to the end of the server or of its own time."""

    def __init__(self, stopping: Stopping, seconds: float) -> None:
        self._stopping = stopping
        self._end = asyncio.get_running_loop().time() + seconds

    async def wait_for(self, event: asyncio.Event) -> bool:
        """Whether the event came before the end."""
        rest = self._end - asyncio.get_running_loop().time()
        tasks = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait(tasks, timeout=max(0.0, rest), return_when=asyncio.FIRST_COMPLETED)
            return tasks[0].done() and not tasks[1].done()
        finally:
            for task in tasks:
                task.cancel()


class FolderWatch:
    """Watches folders with one inotify handle for the whole server."""

    def __init__(self) -> None:
        self._events: FolderEvents[Path] = FolderEvents()
        self._calls: dict[Path, list[Callable[[], None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, folder: Path, call: Callable[[], None]) -> bool:
        """Call `call` when something in `folder` changes. False if the folder does not exist or cannot be watched."""
        if not self._events.works or not folder.is_dir():
            return False
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._events.fileno(), self._note)
        self._events.watch(folder, folder)
        self._calls.setdefault(folder, []).append(call)
        return True

    def forget(self, folder: Path, call: Callable[[], None]) -> None:
        """Call `call` no more."""
        calls = self._calls.get(folder, [])
        if call in calls:
            calls.remove(call)
        if not calls and folder in self._calls:
            del self._calls[folder]
            self._events.forget(folder)

    def _note(self) -> None:
        for folder in self._events.take():
            for call in list(self._calls.get(folder, ())):
                call()

    def close(self) -> None:
        """Stop watching."""
        if self._loop is not None:
            self._loop.remove_reader(self._events.fileno())
            self._loop = None
        self._events.close()


class RunFeed:
    """The states of one run and how often its files changed, as far as it is followed."""

    def __init__(self, folder: RunFolder, states: States, folders: FolderWatch) -> None:
        self._folder = folder
        self._source = states
        self._watch = folders
        self._places: Mapping[str, Path] = MappingProxyType({LOGS: folder.logs, JOURNALS: folder.journals})
        self._calls = {kind: partial(self._note_files, kind) for kind in self._places}
        self._watched: set[str] = set()
        self._signatures: dict[str, object] = {}
        self._versions = dict.fromkeys(self._places, 1)
        self._states: list[RunNews] = []
        self._first = 0
        self._error: BaseException | None = None
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.followers = 0

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended. All its files are complete then."""
        return bool(self._states) and self._states[-1]["ended"]

    @property
    def has_failed(self) -> bool:
        """Whether it cannot be followed, for example because there is no such run."""
        return self._error is not None

    def version(self, kinds: frozenset[str]) -> int:
        """Grows when a file of these kinds may have grown."""
        return sum(self._versions[kind] for kind in kinds)

    def states_since(self, number: int) -> tuple[list[RunNews], int]:
        """The states from `number` on, and the number of the next one."""
        return self._states[max(0, number - self._first) :], self._first + len(self._states)

    async def wait(self, is_news: Callable[[], bool], patience: Patience) -> bool:
        """Return True when `is_news` says so, or False when patience is over. Raises the error that ended the watch."""
        while not is_news():
            if self._error is not None:
                raise self._error
            if not await patience.wait_for(self._changed):
                return False
        return True

    def start(self) -> None:
        """Begin to watch."""
        self._tasks = [asyncio.create_task(self._follow_states()), asyncio.create_task(self._look_at_files())]
        for task in self._tasks:
            task.add_done_callback(self._note_end)

    def stop(self) -> None:
        """Watch no more."""
        for task in self._tasks:
            task.cancel()
        for kind in self._watched:
            self._watch.forget(self._places[kind], self._calls[kind])
        self._watched.clear()

    async def _follow_states(self) -> None:
        async for news in self._source.watch(self._folder.path.name):
            self._states.append(news)
            dropped = len(self._states) - _MOST_STATES
            if dropped > 0:
                del self._states[:dropped]
                self._first += dropped
            self._begin_watching()
            self._wake()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """If the watch failed, the clients of this feed get the error."""
        if not task.cancelled() and task.exception() is not None:
            self._error = task.exception()
            self._wake()

    async def _look_at_files(self) -> None:
        while True:
            self._begin_watching()
            found = await to_thread.run_sync(self._sign_all)
            for kind, signature in found.items():
                if self._signatures.setdefault(kind, signature) != signature:
                    self._signatures[kind] = signature
                    self._note_files(kind)
            await asyncio.sleep(_LOOK_SECONDS)

    def _begin_watching(self) -> None:
        for kind in self._places.keys() - self._watched:
            if self._watch.watch(self._places[kind], self._calls[kind]):
                self._watched.add(kind)
                self._note_files(kind)

    def _sign_all(self) -> dict[str, object]:
        return {kind: _sign(place) for kind, place in self._places.items()}

    def _note_files(self, kind: str) -> None:
        self._versions[kind] += 1
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _sign(folder: Path) -> object:
    """Changes when a file in `folder` grows, appears or is moved away."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.stat(follow_symlinks=False).st_size) for entry in entries)
    except OSError:
        return None


class RunFeeds:
    """The feeds of all runs that somebody follows."""

    def __init__(self) -> None:
        self._folders = FolderWatch()
        self._feeds: SharedFeeds[RunFeed] = SharedFeeds()

    def follow(self, folder: RunFolder, states: States) -> AbstractContextManager[RunFeed]:
        """The feed of one run."""
        return self._feeds.share(folder.path, lambda: RunFeed(folder, states, self._folders))

    def __len__(self) -> int:
        return len(self._feeds)

    def close(self) -> None:
        """Watch nothing any more."""
        self._feeds.stop_all()
        self._folders.close()
