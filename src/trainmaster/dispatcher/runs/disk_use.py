"""Measures how much disk runs and artifacts take, while there is a quota for it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

from trainmaster.dispatcher.store import Store
from trainmaster.job.helper.safe_names import is_plain
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import TERMINAL, RunRecord
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

_PAGE = 200
_PAUSE_SECONDS = 0.5
"""Between two measurements of files that clients of MLflow change all the time."""


class DiskUse:
    """Measures each run when it ends, and once those that ended before there was a quota. A listener of `Watchers`."""

    def __init__(self, folder: WorkspaceFolder, store: Store, measured: Callable[[], None]) -> None:
        """`measured` is called when sizes have changed."""
        self._folder = folder
        self._store = store
        self._measured = measured
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed: set[str] = set()
        self._is_measuring_changes = False
        self.is_wanted = False
        """Whether there is a quota for disks."""

    def want(self, is_wanted: bool) -> None:
        """Starts or stops to measure."""
        begins = is_wanted and not self.is_wanted
        self.is_wanted = is_wanted
        if begins:
            self._start("measuring all runs", self._measure_all)
            self.files_changed()

    def run_changed(self, record: RunRecord) -> None:
        """A run is in another state."""
        if self.is_wanted and record.status in TERMINAL:
            self._start(f"measuring run {record.id}", partial(self._measure_one, record.id))

    def run_reported(self, run_id: str) -> None:
        """A run may have logged something."""

    def files_changed(self, run_id: str = "") -> None:
        """A client of MLflow has changed files of a run, or others without a run."""
        if not self.is_wanted:
            return
        self._changed.add(run_id)
        if not self._is_measuring_changes:
            self._is_measuring_changes = True
            self._start("measuring changed files", self._measure_changed)

    async def close(self) -> None:
        """Stops to measure; the rest is measured by the next dispatcher."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        task = start_task(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _measure_one(self, run_id: str) -> None:
        await asyncio.to_thread(self._measure, run_id)
        self._measured()

    async def _measure_changed(self) -> None:
        try:
            while self._changed:
                changed, self._changed = self._changed, set()
                for run_id in changed:
                    await asyncio.to_thread(self._measure if run_id else self._measure_others, run_id)
                self._measured()
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._is_measuring_changes = False

    async def _measure_all(self) -> None:
        after = 0
        while self.is_wanted:
            page = await asyncio.to_thread(self._store.quotas.list_unmeasured, _PAGE, after)
            if not page:
                return
            for _, run_id in page:
                await asyncio.to_thread(self._measure, run_id)
            after = page[-1][0]
            self._measured()

    def _measure(self, run_id: str) -> None:
        # An id of an earlier release may not be a folder name.
        paths = [self._folder.run(run_id).path] if is_plain(run_id) else []
        paths += map(self._folder.find_logged_model, self._store.removal.find_logged_models([run_id]))
        count = measure_folders(paths)
        self._store.quotas.set_size(run_id, count)

    def _measure_others(self, _: str) -> None:
        models = map(self._folder.find_logged_model, self._store.quotas.list_models_without_run())
        self._store.quotas.set_size_of_others(measure_folders([self._folder.artifacts, *models]))


def measure_folders(paths: Iterable[Path]) -> int:
    """The bytes that deleting these folders frees."""
    return sum(_size(Path(root) / name) for path in paths for root, _, names in os.walk(path) for name in names)


def _size(path: Path) -> int:
    """The bytes that deleting this name frees."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_blocks * 512 if found.st_nlink == 1 else 0
