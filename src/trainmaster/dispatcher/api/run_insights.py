"""What a page about a run or a model shows besides its record: why it is as it is, and where it comes from."""

from __future__ import annotations

import asyncio

from trainmaster.dispatcher.api.metrics import MetricOperations
from trainmaster.dispatcher.api.models import ModelOperations
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.active import ActiveRuns
from trainmaster.dispatcher.runs.differences import compare_runs
from trainmaster.dispatcher.runs.explanations import RunExplanation, explain_run
from trainmaster.dispatcher.runs.lineage import ModelLineage, RunLineage, trace_model, trace_run
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.shared.attempts import read_failed_attempts
from trainmaster.shared.differences import RunDifferences


class RunInsights:
    """Why runs are as they are, and where runs and models come from."""

    def __init__(
        self, context: Context, active: ActiveRuns, models: ModelOperations, metrics: MetricOperations
    ) -> None:
        self._folder = context.folder
        self._store = context.store
        self._active = active
        self._models = models
        self._metrics = metrics
        # Comparing lines takes processor time: not more than one thread of the dispatcher.
        self._comparing = asyncio.Semaphore(1)

    @operation("runs.explain")
    async def explain(self, run_id: str) -> RunExplanation:
        """What a run waits for, or why it failed: exception, rank, last lines, stacks, and the attempts before."""
        record = self._active.describe(require_run(self._store, run_id))
        attempts = await asyncio.to_thread(read_failed_attempts, self._folder.run(record.id))
        sweep = self._store.sweeps.get(record.id)
        return explain_run(record, attempts, sweep.ending_reason if sweep else "")

    @operation("runs.lineage")
    async def trace_run(self, run_id: str) -> RunLineage:
        """Where a run comes from (data, parent, code, environment) and what came of it (models, services, reruns)."""
        return await asyncio.to_thread(trace_run, self._store, require_run(self._store, run_id))

    @operation("runs.differences")
    async def compare(self, run_id: str, other: str) -> RunDifferences:
        """What differs between two runs: arguments, settings, environment, packages, code, machines and metrics."""
        runs = [require_run(self._store, each) for each in (run_id, other)]
        metrics = [await self._metrics.summarize(run.id) for run in runs]
        async with self._comparing:
            return await asyncio.to_thread(compare_runs, self._folder, runs, metrics)

    @operation("models.lineage")
    async def trace_model(self, name: str, version: int) -> ModelLineage:
        """Where a version of a model comes from, and which services use it."""
        return await asyncio.to_thread(trace_model, self._store, self._models.get(name, version))
