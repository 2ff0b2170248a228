"""All runs that have not ended: each is driven, watched for news from its agents, and its journals are read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs import owners
from trainmaster.dispatcher.runs.driver import RunDriver
from trainmaster.dispatcher.runs.marks import Mark, mark_of, mark_property
from trainmaster.dispatcher.runs.procedures import FullProcedure, TrialProcedure
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.runs.watchers import Watchers
from trainmaster.dispatcher.sweeps.driver import SweepDriver, is_sweep
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.owner import Owner, lease_of, owner_of
from trainmaster.shared.records import TERMINAL, RunRecord, Status
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# How often the journals of active runs are read. When a client asks for metrics, they are read at once.
_INGEST_SECONDS = 2.0
# How long it may take to kill all runs, some of them on other machines.
_KILL_SECONDS = 10.0


class ActiveRuns:
    """The drivers of all runs and sweeps that have not ended."""

    def __init__(self, context: Context, scheduler: Scheduler, updates: RunUpdates, watchers: Watchers) -> None:
        self._context = context
        self._scheduler = scheduler
        self._updates = updates
        self._watchers = watchers
        self._drivers: dict[str, RunDriver] = {}
        self._sweeps: dict[str, SweepDriver] = {}
        self._owners: set[Owner] = set()
        self._leases: dict[str, owners.Lease] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._journal_reader: asyncio.Task[None] | None = None
        self._being_read: set[str] = set()
        """The runs whose journals the journal reader is reading."""
        self._followed_until = 0.0
        self._follower: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a run or a sweep has not ended."""
        return bool(self._drivers or self._sweeps)

    # Driving

    def take(
        self, record: RunRecord, sources: Mapping[str, str] | None = None, new_spec: JobSpec | None = None
    ) -> None:
        """Starts to drive a run, or continues one that an earlier dispatcher left.

        `new_spec` is the specification of a run that was just created and has nothing on disk yet.
        """
        if record.id in self._drivers or record.id in self._sweeps or record.status in TERMINAL:
            return
        self._scheduler.add_run(record)
        self._context.changes.note(record.id, "created", str(record.status))
        if is_sweep(record):
            self._take_sweep(record, sources)
        else:
            self._take_run(record, sources, new_spec)

    def _take_sweep(self, record: RunRecord, sources: Mapping[str, str] | None) -> None:
        sweep = SweepDriver(record, self._context, self._scheduler, self._updates, self._watchers, self, sources)
        self._sweeps[record.id] = sweep
        self._watchers.add_listener(sweep)
        self.start(f"sweep {record.id}", partial(self._drive_sweep, sweep))

    def _take_run(self, record: RunRecord, sources: Mapping[str, str] | None, new_spec: JobSpec | None) -> None:
        self._drivers[record.id] = self._make_driver(record, sources, new_spec)
        self.start(f"run {record.id}", partial(self._drive, record.id))
        if self._journal_reader is None or self._journal_reader.done():
            self._journal_reader = self.start("reading journals", self._read_journals)

    def _make_driver(
        self, record: RunRecord, sources: Mapping[str, str] | None = None, new_spec: JobSpec | None = None
    ) -> RunDriver:
        is_trial = record.parent_id in self._sweeps
        procedure = TrialProcedure() if is_trial else FullProcedure()
        return RunDriver(record, self._context, self._scheduler, self._updates, procedure, sources, new_spec)

    async def _drive(self, run_id: str) -> None:
        try:
            await self._drivers[run_id].drive()
        except Exception:
            record = self._context.store.runs.get(run_id)
            if record is not None and record.status not in TERMINAL:
                # The task is started again and continues from the store, as the next dispatcher would.
                self._drivers[run_id] = self._make_driver(record)
                raise
            log.exception("run %s", run_id)
        del self._drivers[run_id]
        self._updates.forget(run_id)
        self._context.ports.release(run_id)
        self._scheduler.remove_run(run_id)

    async def _drive_sweep(self, sweep: SweepDriver) -> None:
        await sweep.drive()
        sweep.close()
        self._watchers.remove_listener(sweep)
        del self._sweeps[sweep.run_id]
        self._scheduler.remove_run(sweep.run_id)

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Runs `work` in a task that ends with the dispatcher."""
        task = start_task(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait_until_left(self, run_id: str) -> None:
        """Returns when no driver works on a run that has ended any more."""
        while run_id in self._drivers or run_id in self._sweeps:
            await asyncio.sleep(0.01)

    def sweep(self, run_id: str) -> SweepDriver | None:
        """The driver of an active sweep."""
        return self._sweeps.get(run_id)

    def end_with_owner(self, record: RunRecord) -> None:
        """Ends a run without a job when the program that logs to it ends, or renews its lease no more."""
        seconds = lease_of(record.properties)
        if seconds is not None:
            self._start_lease(record.id, seconds)
            return
        owner = owner_of(record.properties)
        if owner is None or owner in self._owners or not owner.is_here:
            return
        self._owners.add(owner)
        work = partial(owners.end_with, owner, self._context.store, self._updates)
        task = self.start(f"owner {owner.pid}", work)
        task.add_done_callback(lambda _: self._owners.discard(owner))

    def _start_lease(self, run_id: str, seconds: float) -> None:
        if run_id in self._leases:
            return
        lease = self._leases[run_id] = owners.Lease(seconds)
        work = partial(owners.end_with_lease, run_id, lease, self._context.store, self._updates)
        self.start(f"lease of {run_id}", work).add_done_callback(lambda _: self._leases.pop(run_id, None))

    def renew_lease(self, run_id: str, seconds: float) -> None:
        """Keeps a run with a lease Running for that long; nothing for other runs."""
        lease = self._leases.get(run_id)
        if lease is not None:
            lease.renew(seconds)

    # Reading journals

    async def _read_journals(self) -> None:
        """Reads the journals of all runs at intervals, until no run is left."""
        while self._drivers:
            await asyncio.sleep(_INGEST_SECONDS)
            for run_id in [run_id for runs in self._scheduler.held_nodes.values() for run_id in runs]:
                driver = self._drivers.get(run_id)
                # A run that waits in the queue of its engine has no journals.
                if driver is None or driver.has_begun:
                    self._read_journals_of(run_id)

    def follow(self, seconds: float) -> None:
        """Reads the journals of runs without a job, too, for that long: a client follows the workspace."""
        self._followed_until = max(self._followed_until, time.monotonic() + seconds)
        if self._follower is None or self._follower.done():
            self._follower = self.start("reading journals of programs", self._read_programs)

    async def _read_programs(self) -> None:
        while time.monotonic() < self._followed_until:
            for record in self._context.store.runs.list_active() if self._owners or self._leases else ():
                if not record.spec:
                    self._read_journals_of(record.id)
            await asyncio.sleep(_INGEST_SECONDS)

    def _read_journals_of(self, run_id: str) -> None:
        """Reads in a separate task, so that a run with long journals does not delay the others."""
        if run_id not in self._being_read:
            self._being_read.add(run_id)
            task = self.start(f"journals of run {run_id}", partial(self._updates.bring_in_or_log, run_id))
            task.add_done_callback(lambda _: self._being_read.discard(run_id))

    # What clients and agents tell

    def cancel(self, run_id: str) -> None:
        """Passes a cancel request on to the driver."""
        driver = self._drivers.get(run_id) or self._sweeps.get(run_id)
        if driver is not None:
            driver.cancel()

    def mark(self, run_id: str, mark: Mark) -> None:
        """Sets the state that a submitted run gets when its script has ended. Only the first mark counts."""
        store = self._context.store
        record = store.runs.get(run_id)
        if record is None or record.status in (*TERMINAL, Status.CANCEL_REQUESTED) or mark_of(record.properties):
            return
        store.runs.add_properties(run_id, mark_property(mark))
        driver = self._drivers.get(run_id)
        if driver is not None:
            driver.mark(mark)
        store.runs.add_warnings(run_id, mark.notice)

    def hear_from_agent(self, run_id: str, event: str) -> None:
        """An agent reports that its script runs, or that only services are left. Its end is noticed otherwise."""
        driver = self._drivers.get(run_id)
        if driver is not None and event == "running":
            driver.see_running()
        elif driver is not None and event == "done":
            driver.see_done()

    def find_reason(self, run_id: str, status: str) -> str:
        """What a run waits for, which is not in the store; empty for a run that has ended."""
        if status in TERMINAL:
            return ""
        driver = self._drivers.get(run_id) or self._sweeps.get(run_id)
        return self._scheduler.waiting_reason(run_id) or (driver.progress if driver is not None else "")

    def describe(self, record: RunRecord) -> RunRecord:
        """The record with the reason for which the run waits, which is not in the store."""
        reason = self.find_reason(record.id, record.status)
        if record.status is Status.QUEUED and record.nodes:
            # Asking for the reason made the engine look at the run, which may have started by now.
            record = self._context.store.runs.get(record.id) or record
            reason = reason if record.status is Status.QUEUED else ""
        if not reason or record.status in TERMINAL:
            return record
        return replace(record, waiting_for=reason)

    # The end of the dispatcher

    async def kill_all(self, engine: str = "") -> None:
        """Ends the processes of all runs, or of those on one engine. What they leave behind is not brought in."""
        await self._cancel_tasks()
        drivers = [driver for driver in self._drivers.values() if engine in ("", driver.engine_name)]
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                await asyncio.gather(*(driver.kill() for driver in drivers), return_exceptions=True)
        except TimeoutError:
            log.warning("not all runs could be ended within %.0f s", _KILL_SECONDS)

    async def _cancel_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stops driving; runs continue by themselves, and the next dispatcher takes them over."""
        await self._cancel_tasks()
        for sweep in self._sweeps.values():
            sweep.close()
