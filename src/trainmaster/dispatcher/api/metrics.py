"""Operations on what runs logged. Journals are read first, so every answer is up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import TERMINAL, LatestUse, MetricSeries, MetricSummary, RankMetric

MOST_RUNS = 500
"""Runs that are compared at once."""


class MetricOperations:
    """Operations on metrics."""

    def __init__(self, store: Store, updates: RunUpdates) -> None:
        self._store = store
        self._updates = updates

    @operation("runs.ingest")
    async def ingest(self, run_id: str) -> None:
        """Read what the run has logged up to now."""
        require_run(self._store, run_id)
        await self._updates.bring_in(run_id)

    @operation("runs.metrics", from_journals=True)
    async def summarize(self, run_id: str, system: bool = False) -> list[MetricSummary]:
        """The metrics of a run without their history. With `system`, what it used of its machines instead."""
        await self.ingest(run_id)
        return await asyncio.to_thread(partial(self._store.metrics.summarize, run_id, system=system))

    @operation("runs.series", from_journals=True)
    async def read(
        self,
        run_id: str,
        name: str | None = None,
        max_points: int | None = None,
        since: int = 0,
        system: bool = False,
    ) -> list[MetricSeries]:
        """The values of a run's metrics, or of one metric, from the index `since` on.

        A live chart passes the `count` of the last answer as `since`, and gets only what is new. A series that is
        longer than `max_points` is thinned; the smallest and largest values stay. With `system`, what the run used of
        its machines instead of what it logged.
        """
        await self.ingest(run_id)
        read = partial(self._store.metrics.read, run_id, name, max_points=max_points, since=since, system=system)
        return await asyncio.to_thread(read)

    @operation("runs.compare")
    async def compare(
        self, run_ids: list[str], name: str, max_points: int | None = None, since: Mapping[str, int] | None = None
    ) -> dict[str, MetricSeries]:
        """One metric of many runs, by run id; runs without it are left out. `since` has an index for each run."""
        if len(run_ids) > MOST_RUNS:
            raise UserErrorException(f"{len(run_ids)} runs cannot be compared at once: {MOST_RUNS} at most")
        found = await asyncio.to_thread(self._store.runs.get_many, run_ids)
        for record in found:
            # The journals of a run that has ended are in the store.
            if record.status not in TERMINAL:
                await self._updates.bring_in(record.id)
        ids = [record.id for record in found]
        return await asyncio.to_thread(self._read_many, ids, name, max_points, since or {})

    def _read_many(
        self, run_ids: list[str], name: str, max_points: int | None, since: Mapping[str, int]
    ) -> dict[str, MetricSeries]:
        read = partial(self._store.metrics.read, name=name, max_points=max_points)
        return {run_id: series for run_id in run_ids for series in read(run_id, since=since.get(run_id, 0))}

    @operation("runs.latest_use")
    async def read_latest_use(self, run_ids: list[str]) -> list[LatestUse]:
        """What these runs used when they were last measured; runs that never were are left out."""
        if len(run_ids) > MOST_RUNS:
            raise UserErrorException(f"{len(run_ids)} runs cannot be asked for at once: {MOST_RUNS} at most")
        records = await asyncio.to_thread(self._store.runs.get_many, run_ids)
        for record in records:
            if record.status not in TERMINAL:
                await self._updates.bring_in(record.id)
        ids = [record.id for record in records]
        found = await asyncio.to_thread(lambda: [self._store.metrics.read_latest_use(run_id) for run_id in ids])
        return [each for each in found if each is not None]

    @operation("runs.metrics_by_rank", from_journals=True)
    async def read_by_rank(
        self, run_id: str, name: str | None = None, max_points: int | None = None, system: bool = False
    ) -> list[RankMetric]:
        """The same for each rank. Metrics `system/node/...` have the number of a node in place of the rank."""
        await self.ingest(run_id)
        read = partial(self._store.metrics.read_by_rank, run_id, name, max_points=max_points, system=system)
        return await asyncio.to_thread(read)
