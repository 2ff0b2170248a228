"""Values that MLflow's clients log: kept when they are in the journal of the run, read into the store in batches.

A file named after the run marks runs with unread values, so that a dispatcher that is killed loses none of them. The
mark stays for some seconds after the values were read: a database may lose its last transactions when it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.job.errors import RunNotFoundException
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.job.script.journal import Journal
from trainmaster.shared import json_text
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

JOURNAL = "mlflow.jsonl"
_PAUSE_SECONDS = 0.1
"""Until values are read that nobody has asked for: those that arrive meanwhile are read with them."""
_MARK_SECONDS = 5.0
_MOST_OPEN = 128


class MetricLog:
    """The values of all runs on their way into the store."""

    def __init__(self, folder: WorkspaceFolder, updates: RunUpdates) -> None:
        self._folder = folder
        self._updates = updates
        self._journals: OrderedDict[str, Journal] = OrderedDict()
        self._unread: dict[str, int] = {}
        """Run id to how many records were written since it was read."""
        self._marked: dict[str, float] = {}
        """Run id to when it was last read or written."""
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def resume(self) -> None:
        """Read what an earlier dispatcher has left, from now on in the background."""
        with contextlib.suppress(FileNotFoundError):
            for name in filter(is_plain, os.listdir(self._folder.unread_runs)):
                self._unread[name] = 0
                self._marked[name] = time.monotonic()
        if self._unread:
            self._news.set()
        self._task = start_task("reading logged values", self._follow)

    async def close(self) -> None:
        """Stop. What is unread is read by the next dispatcher."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for journal in self._journals.values():
            journal.close()

    def append(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Keep one record of an existing run: when this returns, it outlives every process."""
        line = json_text.write(record) + b"\n"
        if run_id not in self._marked:
            self._mark(run_id)
        self._find_journal(run_id).write(line)
        self._unread[run_id] = self._unread.get(run_id, 0) + 1
        self._news.set()

    async def bring_in(self, run_id: str | None = None) -> None:
        """Return when everything that was logged before is in the store, of one run or of all."""
        for each in list(self._unread) if run_id is None else [run_id]:
            if each in self._unread:
                await self._read(each)

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), _MARK_SECONDS if self._marked else None)
                await asyncio.sleep(_PAUSE_SECONDS)
            self._news.clear()
            await self.bring_in()
            self._remove_marks()

    async def _read(self, run_id: str) -> None:
        count = self._unread[run_id]
        with contextlib.suppress(RunNotFoundException):
            # A run that was deleted has no values any more.
            await self._updates.bring_in(run_id)
        if self._unread.get(run_id) == count:
            del self._unread[run_id]
        self._marked[run_id] = time.monotonic()

    def _find_journal(self, run_id: str) -> Journal:
        journal = self._journals.get(run_id)
        if journal is None:
            journal = self._journals[run_id] = Journal(self._folder.run(run_id).journals / JOURNAL)
            if len(self._journals) > _MOST_OPEN:
                oldest, idle = self._journals.popitem(last=False)
                idle.close()
                if oldest not in self._unread:
                    self._updates.forget(oldest)
        self._journals.move_to_end(run_id)
        return journal

    def _mark(self, run_id: str) -> None:
        self._folder.run(run_id)
        path = self._folder.unread_runs / run_id
        try:
            path.touch()
        except FileNotFoundError:
            path.parent.mkdir(exist_ok=True)
            path.touch()
        self._marked[run_id] = time.monotonic()

    def _remove_marks(self) -> None:
        limit = time.monotonic() - _MARK_SECONDS
        for run_id in [each for each, at in self._marked.items() if at < limit and each not in self._unread]:
            (self._folder.unread_runs / run_id).unlink(missing_ok=True)
            del self._marked[run_id]
