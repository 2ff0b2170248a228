"""The operations on sweeps for clients."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.accepting import check_priority
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.sweeps.decision_log import SweepDecisions, read_decisions
from trainmaster.dispatcher.sweeps.driver import LOG_NAME, SweepDriver, is_sweep
from trainmaster.dispatcher.sweeps.log import SweepLog
from trainmaster.dispatcher.sweeps.trials import Trials, view_of
from trainmaster.job.errors import HyperDriveConfigException, RunNotFoundException, UserErrorException
from trainmaster.shared.job_spec import dump_spec, load_spec
from trainmaster.shared.records import MetricSeries, RunRecord, SweepRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.tuning.goal import PrimaryMetricGoal
from trainmaster.tuning.importance import SweepImportance, rate_parameters
from trainmaster.tuning.spec import SweepSpec, dump_sweep, load_sweep
from trainmaster.tuning.view import (
    SweepChanges,
    SweepSummary,
    SweepView,
    TrialView,
    count_states,
    summary_of,
    sweep_view,
)
from trainmaster.tuning.warm_start import EarlierChild, EarlierSweep, with_history

_MOST_DECISIONS = 10_000
_LONGEST_LOG = 4 << 20

Accept = Callable[[RunRecord, Mapping[str, str] | None], Awaitable[RunRecord]]


class SweepRuns(Protocol):
    """What these operations need of the active runs."""

    def take(self, record: RunRecord, sources: Mapping[str, str] | None) -> None:
        """Starts to drive a sweep."""

    def sweep(self, run_id: str) -> SweepDriver | None:
        """The driver of an active sweep."""


class Sweeps:
    """The operations on sweeps."""

    def __init__(self, context: Context, runs: SweepRuns, updates: RunUpdates, accept: Accept) -> None:
        """`accept` returns a new run as it will be stored, or refuses it."""
        self._folder = context.folder
        self._store = context.store
        self._runs = runs
        self._updates = updates
        self._accept = accept

    @operation("sweeps.submit")
    async def submit(
        self,
        run: Mapping[str, Any],
        sweep: str,
        sources: Mapping[str, str] | None = None,
        may_raise_priority: bool = True,
    ) -> RunRecord:
        """Queues a sweep durably; repeating the request returns the same sweep.

        A server says whether the caller may give its trials a priority above 0.
        """
        record = from_plain(RunRecord, run)
        known = self._store.runs.get(record.id)
        if known is None:
            spec = load_sweep(sweep)
            if not may_raise_priority:
                check_priority(spec.job)
            known = await self._keep(record, spec, sources)
        elif not is_sweep(known):
            raise UserErrorException(f"there is a run '{record.id}' already, which is not a sweep")
        self._runs.take(known, sources)
        return known

    async def _keep(self, record: RunRecord, spec: SweepSpec, sources: Mapping[str, str] | None) -> RunRecord:
        spec = self._with_history(spec)
        accepted = await self._accept(replace(record, spec=dump_spec(spec.job)), sources)
        if known := self._store.runs.get(record.id):
            return known
        folder = self._folder.run(record.id)
        folder.journals.mkdir(parents=True, exist_ok=True)
        SweepLog(folder.logs / LOG_NAME).close()
        return self._store.sweeps.add(accepted, dump_sweep(replace(spec, job=load_spec(accepted.spec))))

    def _with_history(self, spec: SweepSpec) -> SweepSpec:
        if not (spec.resume_from or spec.resume_child_runs):
            return spec
        sweeps = [self._earlier(run_id) for run_id in spec.resume_from]
        return with_history(spec, sweeps, [self._child(run_id) for run_id in spec.resume_child_runs])

    def _earlier(self, run_id: str) -> EarlierSweep:
        record = self._store.runs.get(run_id)
        kept = None if record is None else self._store.sweeps.get(run_id)
        if record is None or kept is None:
            raise HyperDriveConfigException(f"resume_from: there is no sweep '{run_id}' in this workspace")
        spec = load_sweep(kept.spec, f"the description of sweep {run_id}")
        return EarlierSweep(run_id, record.status, spec, Trials(self._store, run_id, spec.metric).ordered)

    def _child(self, run_id: str) -> EarlierChild:
        record = self._store.runs.get(run_id)
        if record is None:
            raise HyperDriveConfigException(f"resume_child_runs: there is no run '{run_id}' in this workspace")
        parameters = self._store.sweeps.get_parameters(run_id)
        parent = None if parameters is None else record.parent_id
        return EarlierChild(run_id, record.status, parent, parameters or {})

    @operation("sweeps.describe")
    def describe(self, run_id: str) -> dict[str, Any]:
        """The SweepSpec of a sweep, as plain data."""
        found: dict[str, Any] = json.loads(self._get(run_id)[1].spec)
        return found

    @operation("sweeps.view")
    async def view(self, run_id: str) -> SweepView:
        """The view of a sweep."""
        return (await self.changes(run_id)).view

    @operation("sweeps.changes")
    async def changes(self, run_id: str, since: str = "") -> SweepChanges:
        """The view of a sweep with only those trials that have changed since an earlier answer.

        Pass `version` as `since` next time. `whole` says whether the view has all trials.
        """
        life = self._runs.sweep(run_id)
        for trial in life.going if life else ():
            await self._updates.bring_in(trial)
        before = _count(since)
        found = life.view(before) if life else None
        if found is not None:
            view, count = found
            return SweepChanges(view, f"{os.getpid()}.{count}", before < 0)
        view = await asyncio.to_thread(self._view_of_kept, run_id)
        return SweepChanges(view, "", True)

    @operation("sweeps.importance")
    async def rate_parameters(self, run_id: str) -> SweepImportance:
        """How much each parameter matters for the best value of the metric that trials reached."""
        view = await self.view(run_id)
        trials = [(trial.parameters, trial.best) for trial in view.trials]
        return await asyncio.to_thread(rate_parameters, trials)

    @operation("sweeps.decisions")
    async def list_decisions(self, run_id: str, limit: int = 1000, only_cuts: bool = False) -> SweepDecisions:
        """What the policy decided about trials, with its numbers, newest first."""
        if not 1 <= limit <= _MOST_DECISIONS:
            raise UserErrorException(f"limit must be between 1 and {_MOST_DECISIONS}, not {limit}")
        self._get(run_id)
        return await asyncio.to_thread(self._read_decisions, run_id, limit, only_cuts)

    def _read_decisions(self, run_id: str, limit: int, only_cuts: bool) -> SweepDecisions:
        run_ids = {trial.number: trial.run_id for trial in self._store.sweeps.list_trials(run_id)}
        text = _read_end(self._folder.run(run_id).logs / LOG_NAME)
        found = [each for each in read_decisions(text, run_ids) if each.is_cut or not only_cuts]
        return SweepDecisions(tuple(found[: -limit - 1 : -1]), len(found))

    @operation("sweeps.summaries")
    async def summaries(self, run_ids: list[str]) -> list[SweepSummary]:
        """Summaries for a list of sweeps. For a sweep that has ended, only the summary is read."""
        return [await self._summary(run_id) for run_id in run_ids]

    async def _summary(self, run_id: str) -> SweepSummary:
        if self._runs.sweep(run_id) is not None:
            return summary_of(await self.view(run_id), time.time())
        return await asyncio.to_thread(self._summary_of_kept, run_id)

    def _summary_of_kept(self, run_id: str) -> SweepSummary:
        record, kept, spec = self._load(run_id)
        counts = count_states(self._store.sweeps.count_trials(run_id))
        best = self._store.sweeps.find_best_trial(run_id, spec.metric, largest=spec.goal == PrimaryMetricGoal.MAXIMIZE)
        if best is None:
            return SweepSummary(self._make_view(record, kept, spec, ()), counts)
        _, values = self._store.sweeps.read_numbers(best.run_id, spec.metric)
        return SweepSummary(self._make_view(record, kept, spec, ()), counts, view_of(spec.goal, best, values))

    def _view_of_kept(self, run_id: str) -> SweepView:
        record, kept, spec = self._load(run_id)
        return self._make_view(record, kept, spec, Trials(self._store, run_id, spec.metric).views(spec.goal))

    def _load(self, run_id: str) -> tuple[RunRecord, SweepRecord, SweepSpec]:
        record, kept = self._get(run_id)
        return record, kept, load_sweep(kept.spec, f"the description of sweep {run_id}")

    def _make_view(
        self, record: RunRecord, kept: SweepRecord, spec: SweepSpec, trials: Iterable[TrialView]
    ) -> SweepView:
        return sweep_view(
            spec,
            record.id,
            record.experiment,
            record.status,
            trials,
            started_at=record.started_at,
            ended_at=record.ended_at,
            ending=kept.ending_reason,
            warnings=record.warnings,
        )

    @operation("sweeps.parameters")
    def parameters(self, run_id: str) -> dict[str, Any]:
        """Run id of each trial to its parameters."""
        self._get(run_id)
        return {trial.run_id: trial.parameters for trial in self._store.sweeps.list_trials(run_id)}

    @operation("sweeps.metrics")
    async def metrics(self, run_id: str) -> dict[str, list[MetricSeries]]:
        """Run id of each trial to its metrics."""
        self._get(run_id)
        life = self._runs.sweep(run_id)
        for trial in life.going if life else ():
            await self._updates.bring_in(trial)
        return await asyncio.to_thread(self._metrics, run_id)

    def _metrics(self, run_id: str) -> dict[str, list[MetricSeries]]:
        return {
            trial.run_id: self._store.metrics.read(trial.run_id) for trial in self._store.sweeps.list_trials(run_id)
        }

    def _get(self, run_id: str) -> tuple[RunRecord, SweepRecord]:
        record = self._store.runs.get(run_id)
        kept = None if record is None else self._store.sweeps.get(run_id)
        if record is None or kept is None:
            raise RunNotFoundException(
                f"there is no sweep '{run_id[:300]}' in this workspace", hint="'trainmaster runs' lists all runs."
            )
        return record, kept


def _read_end(path: Path) -> str:
    """The end of a log, as much as a page can show."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LONGEST_LOG))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _count(since: str) -> int:
    """The version that the client has; -1 if it comes from another dispatcher, which counts from zero."""
    process, _, count = since.partition(".")
    return int(count) if process == str(os.getpid()) and count.isdigit() else -1
