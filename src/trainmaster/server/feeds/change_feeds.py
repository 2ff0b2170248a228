"""What changes in workspaces, for all clients that follow one: the dispatcher is asked once for all of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from trainmaster.server.feeds.run_feeds import Patience
from trainmaster.server.feeds.sharing import SharedFeeds

Changes = dict[str, Any]
"""An answer of the operation `workspace.changes`."""
Ask = Callable[[str, float], Awaitable[Changes]]
"""Asks a dispatcher for the changes since a version, and waits so many seconds for one."""

_POLL_SECONDS = 25.0
_REMEMBERED = 200


class ChangeFeed:
    """The last changes in one workspace."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.version = ""
        """The version after all known changes; empty before the first answer."""
        self._known: deque[tuple[str, Changes]] = deque(maxlen=_REMEMBERED)
        """Each answer with the version that it continues."""
        self._error: BaseException | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.followers = 0

    @property
    def has_failed(self) -> bool:
        """Whether it cannot be followed."""
        return self._error is not None

    def start(self) -> None:
        """Begin to ask."""
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(self._note_end)

    def stop(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()

    def find(self, since: str) -> Changes | None:
        """The changes that continue the version `since`, if they are remembered."""
        return next((changes for version, changes in self._known if version == since), None)

    async def wait(self, seen: str, patience: Patience) -> bool:
        """Return True when the version is another than `seen`, or False when patience is over."""
        while self.version == seen:
            if self._error is not None:
                raise self._error
            if not await patience.wait_for(self._changed):
                return False
        return True

    async def _follow(self) -> None:
        self._note((await self._ask("", 0.0))["version"])
        while True:
            changes = await self._ask(self.version, _POLL_SECONDS)
            if changes["runs"] or not changes["whole"]:
                self._known.append((self.version, changes))
            if changes["version"] != self.version:
                self._note(changes["version"])

    def _note(self, version: str) -> None:
        self.version = version
        self._wake()

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._error = task.exception()
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class ChangeFeeds:
    """The feeds of all workspaces that somebody follows."""

    def __init__(self) -> None:
        self._feeds: SharedFeeds[ChangeFeed] = SharedFeeds()

    def follow(self, workspace: Path, ask: Ask) -> AbstractContextManager[ChangeFeed]:
        """The feed of one workspace."""
        return self._feeds.share(workspace, lambda: ChangeFeed(ask))
