"""Operations on what runs logged. Journals are read first, so every answer is up to date."""

from __future__ import annotations

import asyncio

from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import MetricSeries, MetricSummary, RankMetric


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

    @operation("runs.metrics")
    async def summarize(self, run_id: str) -> list[MetricSummary]:
        """The metrics of a run without their history."""
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics.summarize, run_id)

    @operation("runs.series")
    async def read(self, run_id: str, name: str | None = None, max_points: int | None = None) -> list[MetricSeries]:
        """The values of a run's metrics, or of one metric."""
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics.read, run_id, name, max_points=max_points)

    @operation("runs.metrics_by_rank")
    async def read_by_rank(
        self, run_id: str, name: str | None = None, max_points: int | None = None
    ) -> list[RankMetric]:
        """The same for each rank."""
        await self.ingest(run_id)
        return await asyncio.to_thread(self._store.metrics.read_by_rank, run_id, name, max_points=max_points)
