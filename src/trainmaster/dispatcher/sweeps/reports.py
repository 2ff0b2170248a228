"""Notices when trials log metrics: watches the journals of trials that a policy may end, instead of polling them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from trainmaster.shared.file_events import FolderEvents
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.tasks import start_task

# Metrics that arrive within this time are read together.
_TOGETHER_SECONDS = 0.1


class Reports:
    """Calls `bring_in(run_id)` soon after a watched run has written to a journal.

    Files on other machines cause no events; their journals are read at intervals.
    """

    def __init__(self, bring_in: Callable[[str], Awaitable[None]]) -> None:
        self._bring_in = bring_in
        self._events: FolderEvents[str] = FolderEvents()
        self._heard: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._listening = False

    def watch(self, run_id: str, folder: RunFolder) -> None:
        """Starts to watch a run."""
        folder.journals.mkdir(parents=True, exist_ok=True)
        self._events.watch(folder.journals, run_id)
        if self._events.works and not self._listening:
            asyncio.get_running_loop().add_reader(self._events.fileno(), self._hear)
            self._listening = True

    def forget(self, run_id: str) -> None:
        """Stops watching a run."""
        self._events.forget(run_id)
        self._heard.discard(run_id)

    def _hear(self) -> None:
        self._heard |= self._events.take()
        if self._heard and (self._task is None or self._task.done()):
            self._task = start_task("reports of trials", self._bring_all_in)

    async def _bring_all_in(self) -> None:
        while self._heard:
            await asyncio.sleep(_TOGETHER_SECONDS)
            heard, self._heard = self._heard, set()
            for run_id in sorted(heard):
                await self._bring_in(run_id)

    def close(self) -> None:
        """Stops watching all runs."""
        if self._task is not None:
            self._task.cancel()
        if self._listening:
            asyncio.get_running_loop().remove_reader(self._events.fileno())
            self._listening = False
        self._events.close()
