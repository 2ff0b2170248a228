"""Operations on runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.dispatcher.arguments import UNCHANGED, changes_in
from trainmaster.dispatcher.assembly import Dispatcher
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.accepting import accept, check_priority, with_plain_id
from trainmaster.dispatcher.runs.dry_run import current_situation, plan_run
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.runs.marks import STATES, Mark
from trainmaster.dispatcher.store.mlflow_runs import RUN_NAME
from trainmaster.dispatcher.sweeps.driver import is_sweep
from trainmaster.job.errors import UserErrorException
from trainmaster.shared import beneath
from trainmaster.shared.attempts import FailedAttempt, read_failed_attempts
from trainmaster.shared.job_spec import load_spec
from trainmaster.shared.owner import USUAL_LEASE
from trainmaster.shared.records import MLFLOW_RUN, TERMINAL, RunError, RunQuery, RunRecord, Status
from trainmaster.shared.serialization import from_plain

MOST_RUNS = 1000
"""Runs that one request changes."""


def _has_ended(args: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Only the scheduler knows what other runs wait for."""
    return result["status"] in TERMINAL


def _have_ended(args: Mapping[str, Any], result: list[Mapping[str, Any]]) -> bool:
    return all(_has_ended(args, each) for each in result)


class RunOperations:
    """Operations on runs."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._context = dispatcher.context
        self._scheduler = dispatcher.scheduler
        self._updates = dispatcher.updates
        self._active = dispatcher.runs
        self._store = dispatcher.context.store
        self._changes = dispatcher.context.changes

    @operation("runs.submit")
    async def submit(
        self, run: Mapping[str, Any], sources: Mapping[str, str] | None = None, may_raise_priority: bool = True
    ) -> RunRecord:
        """Queue a run durably. A run that was submitted already stays as it is.

        A server says whether the caller may give it a priority above 0.
        """
        record = with_plain_id(from_plain(RunRecord, run))
        known = self._store.runs.get(record.id)
        if known is None:
            if not may_raise_priority:
                check_priority(load_spec(record.spec))
            new = await accept(self._context, self._scheduler, record, sources)
            known = self._store.runs.get(record.id) or self._store.runs.add(new)
        self._active.take(known, sources)
        return known

    @operation("runs.plan")
    async def plan(self, experiment: str, spec: str) -> dict[str, Any]:
        """What submitting this job would do; nothing is written."""
        situation = current_situation(self._context, self._scheduler)
        return await asyncio.to_thread(plan_run, load_spec(spec), experiment, situation)

    @operation("runs.create")
    def create(self, runs: list[Mapping[str, Any]]) -> list[RunRecord]:
        """Create runs that have no job: interactive runs and children."""
        records = [with_plain_id(from_plain(RunRecord, run)) for run in runs]
        for record in records:
            self._context.folder.run(record.id).journals.mkdir(parents=True, exist_ok=True)
            self._context.folder.run(record.id).files.mkdir(parents=True, exist_ok=True)
        created = self._store.runs.add_many(records)
        for record in created:
            self._changes.note(record.id, "created", str(record.status))
            self._active.end_with_owner(record)
        return created

    @operation("runs.get", from_store=_has_ended)
    def get(self, run_id: str) -> RunRecord:
        """The run with this id."""
        return self._active.describe(self._require(run_id))

    @operation("runs.list", from_store=_have_ended)
    async def find(self, query: Mapping[str, Any]) -> list[RunRecord]:
        """A page of runs, newest first."""
        found = await asyncio.to_thread(self._store.runs.find, from_plain(RunQuery, query))
        return [self._active.describe(record) for record in found]

    @operation("runs.cancel")
    def cancel(self, run_id: str) -> RunRecord:
        """Ask a run to end; a run without a job ends at once."""
        record = self._require(run_id)
        if record.status in TERMINAL:
            return record
        if not record.spec:
            return self._updates.move(run_id, Status.CANCELED) or self._require(run_id)
        self._updates.move(run_id, Status.CANCEL_REQUESTED)
        self._active.cancel(run_id)
        return self._require(run_id)

    @operation("runs.finish")
    async def finish(self, run_id: str, status: str, error: Mapping[str, Any] | None = None) -> RunRecord:
        """End a run that has no job, or mark a run that has one. Metrics logged from outside are read first."""
        record = self._require(run_id)
        if status not in STATES:
            raise UserErrorException(f"a run can end as {' or '.join(sorted(STATES))}, not as {status!r:.40}")
        if is_sweep(record):
            raise UserErrorException(f"sweep {run_id} ends with its trials", hint="Use cancel() to end it now.")
        await self._updates.bring_in(run_id)
        mark = Mark(Status(status), from_plain(RunError, error) if error else None)
        if record.spec:
            self._active.mark(run_id, mark)
            return self._require(run_id)
        return self._updates.move(run_id, mark.status, error=mark.error) or self._require(run_id)

    @operation("runs.clean")
    async def clean(self, run_id: str) -> None:
        """Remove the working folder of an ended run."""
        if self._require(run_id).status not in TERMINAL:
            raise UserErrorException(f"run {run_id} has not ended", hint="Wait for it, or cancel() it first.")
        folder = self._context.folder.run(run_id)
        await asyncio.to_thread(beneath.remove_tree, folder.path, folder.code.name)

    @operation("runs.failed_attempts")
    async def list_failed_attempts(self, run_id: str) -> list[FailedAttempt]:
        """The attempts before the current one, oldest first."""
        folder = self._context.folder.run(self._require(run_id).id)
        return await asyncio.to_thread(read_failed_attempts, folder)

    @operation("runs.environment_lock")
    async def read_environment_lock(self, run_id: str) -> str | None:
        """The packages of the run's environment; None if it was not built."""
        lock = self._context.folder.run(self._require(run_id).id).environment_lock
        return lock.read_text(encoding="utf-8") if lock.is_file() else None

    @operation("runs.renew")
    def renew(self, run_id: str, seconds: float = USUAL_LEASE) -> RunRecord:
        """Keep a run without a job Running for `seconds`, because its program is there. Return the run as it is."""
        record = self._require(run_id)
        if record.status not in TERMINAL:
            self._active.renew_lease(run_id, seconds)
        return record

    @operation("runs.archive")
    async def archive(self, run_ids: list[str]) -> list[str]:
        """Leave ended runs and their descendants out of lists. Return the ids of those that were not archived yet."""
        return await self._set_archived(run_ids, time.time())

    @operation("runs.restore")
    async def restore(self, run_ids: list[str]) -> list[str]:
        """Show archived runs and their descendants in lists again. Return the ids of those that were archived."""
        return await self._set_archived(run_ids, None)

    async def _set_archived(self, run_ids: list[str], at: float | None) -> list[str]:
        if len(run_ids) > MOST_RUNS:
            raise UserErrorException(f"at most {MOST_RUNS} runs can be archived or restored at once")
        changed = await asyncio.to_thread(self._store.runs.set_archived, run_ids, at)
        for run_id in changed:
            self._changes.note(run_id, "labels")
        return changed

    @operation("runs.tags.set")
    def set_tags(self, run_id: str, tags: Mapping[str, Any]) -> None:
        """Merge tags into those of the run."""
        record = self._require(run_id)
        self._store.runs.set_tags(run_id, tags)
        if record.type == MLFLOW_RUN and tags.get(RUN_NAME):
            self._store.runs.update(run_id, display_name=str(tags[RUN_NAME]))
        self._changes.note(run_id, "labels")

    @operation("runs.tags.remove")
    def remove_tags(self, run_id: str, names: list[str]) -> None:
        """Remove tags; unknown ones are ignored."""
        self._require(run_id)
        self._store.runs.remove_tags(run_id, names)
        self._changes.note(run_id, "labels")

    @operation("runs.properties.add")
    def add_properties(self, run_id: str, properties: Mapping[str, str]) -> None:
        """Add properties, which never change."""
        self._require(run_id)
        self._store.runs.add_properties(run_id, properties)
        self._changes.note(run_id, "labels")

    @operation("runs.update")
    def update(
        self,
        run_id: str,
        display_name: str = UNCHANGED,
        description: str = UNCHANGED,
        snapshot_id: str = UNCHANGED,
    ) -> None:
        """Set the fields that are given."""
        record = self._require(run_id)
        if snapshot_id is not UNCHANGED:
            with_plain_id(replace(record, snapshot_id=snapshot_id))
        changes = changes_in(display_name=display_name, description=description, snapshot_id=snapshot_id)
        self._store.runs.update(run_id, **changes)
        if record.type == MLFLOW_RUN and "display_name" in changes:
            self._store.runs.set_tags(run_id, {RUN_NAME: display_name})
        self._changes.note(run_id, "labels")

    def _require(self, run_id: str) -> RunRecord:
        return require_run(self._store, run_id)
