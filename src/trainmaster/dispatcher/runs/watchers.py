"""Announces changes of runs to the clients that watch them, and to sweeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from trainmaster.shared.records import TERMINAL, RunRecord


class Listener(Protocol):
    """A part of the dispatcher that follows runs."""

    def run_changed(self, record: RunRecord) -> None:
        """A run is in another state."""

    def run_reported(self, run_id: str) -> None:
        """A run may have logged something."""


class Watchers:
    """Passes news of runs on to the clients that watch them, and to listeners inside the dispatcher."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[dict[str, Any]]]] = {}
        self._without_job: set[str] = set()
        self._listeners: list[Listener] = []

    @contextmanager
    def watch(self, record: RunRecord) -> Iterator[asyncio.Queue[dict[str, Any]]]:
        """A queue that receives the news of one run while the block runs."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._queues.setdefault(record.id, set()).add(queue)
        if not record.spec:
            self._without_job.add(record.id)
        try:
            yield queue
        finally:
            self._queues[record.id].discard(queue)
            if not self._queues[record.id]:
                del self._queues[record.id]
                self._without_job.discard(record.id)

    @property
    def watched_without_job(self) -> tuple[str, ...]:
        """The watched runs that have no driver; their end may come from a journal."""
        return tuple(self._without_job)

    def is_watched(self, run_id: str) -> bool:
        """Whether a client watches this run."""
        return run_id in self._queues

    def add_listener(self, listener: Listener) -> None:
        """Announces changes of all runs to `listener` from now on."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Stops announcing changes to `listener`."""
        self._listeners.remove(listener)

    def tell(self, record: RunRecord) -> None:
        """Announces the state of a run."""
        for listener in self._listeners:
            listener.run_changed(record)
        for queue in self._queues.get(record.id, ()):
            queue.put_nowait(news(record))

    def tell_report(self, run_id: str) -> None:
        """Announces that the journals of a run were read."""
        for listener in self._listeners:
            listener.run_reported(run_id)


def news(record: RunRecord) -> dict[str, Any]:
    """What a client that watches a run receives."""
    return {"run_id": record.id, "status": record.status, "ended": record.status in TERMINAL}
