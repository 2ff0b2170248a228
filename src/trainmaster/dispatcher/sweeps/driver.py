"""Drives one sweep: plans the next steps whenever something has happened, and carries them out.

Every step is stored before anything depends on it, so that the next dispatcher can continue from the store.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.quotas import Use
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.runs.waiting import request_of
from trainmaster.dispatcher.runs.watchers import Watchers
from trainmaster.dispatcher.sweeps.log import SweepLog
from trainmaster.dispatcher.sweeps.reports import Reports
from trainmaster.dispatcher.sweeps.starting import end_line, new_trial, start_line
from trainmaster.dispatcher.sweeps.trials import Trials
from trainmaster.job.errors import TrainmasterError, WorkspaceException
from trainmaster.shared.job_spec import JobSpec, load_spec
from trainmaster.shared.records import (
    ACTIVE,
    TERMINAL,
    RunError,
    RunQuery,
    RunRecord,
    Status,
    SweepRecord,
    TrialRecord,
)
from trainmaster.shared.retry import Backoff
from trainmaster.shared.serialization import to_plain
from trainmaster.tuning.history import History
from trainmaster.tuning.planning import Cancel, Ending, Plan, Start, SweepState, deadline, plan
from trainmaster.tuning.spec import SweepSpec, load_sweep
from trainmaster.tuning.trial import Decision
from trainmaster.tuning.view import SweepView, sweep_view

log = logging.getLogger("trainmaster.dispatch")

LOG_NAME = "hyperdrive.txt"
SWEEP_TYPE = "hyperdrive"
ERROR_CODE = "SweepFailed"

# Clients that watch a sweep get news of its trials at most this often.
_NEWS_SECONDS = 0.2


class TrialRuns(Protocol):
    """What a sweep needs of the runs that are its trials."""

    def take(self, record: RunRecord, sources: Mapping[str, str] | None, new_spec: JobSpec | None = None) -> None:
        """Starts to drive a run."""

    def cancel(self, run_id: str) -> None:
        """Passes a cancel request on to the driver of a run."""


class SweepDriver:
    """Drives one sweep."""

    def __init__(
        self,
        record: RunRecord,
        context: Context,
        scheduler: Scheduler,
        updates: RunUpdates,
        watchers: Watchers,
        runs: TrialRuns,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        """`sources` are the submitter's variables for package sources, while they are known."""
        self.run_id = record.id
        self._record = record
        self._folder = context.folder
        self._store = context.store
        self._scheduler = scheduler
        self._updates = updates
        self._watchers = watchers
        self._runs = runs
        self._sources = sources
        self._wake = asyncio.Event()
        self._cancel = record.status is Status.CANCEL_REQUESTED
        self._spec: SweepSpec | None = None
        self._trials: Trials | None = None
        self._ending: Ending | None = None
        # All warnings so far, in their order.
        self._said = dict.fromkeys(record.warnings)
        self._is_prepared = False
        self._plain_job: dict[str, Any] = {}
        self._log: SweepLog | None = None
        self._reports: Reports | None = None
        self._news: asyncio.TimerHandle | None = None

    # Events

    def cancel(self) -> None:
        """A user wants the sweep to end."""
        self._cancel = True
        self._wake.set()

    def run_changed(self, record: RunRecord) -> None:
        """A run is in another state: the sweep itself, one of its trials, or an unrelated one."""
        if record.id == self.run_id:
            self._record = record
        elif record.parent_id == self.run_id:
            self._trial_changed(record)

    def _trial_changed(self, run: RunRecord) -> None:
        if self._trials is None or not self._trials.has(run.id):
            # The trials have not been read yet; the store will give the same state.
            return
        trial = self._trials.update_run(run)
        self._tell_watchers()
        if trial is not None and run.status in TERMINAL:
            # The environment exists now, so that the next trials need not wait for it.
            self._is_prepared = self._is_prepared or run.started_at is not None
            if self._reports is not None:
                self._reports.forget(run.id)
            self._say(end_line(trial, self._best(trial), self._open_spec.metric))
            self._wake.set()

    def run_reported(self, run_id: str) -> None:
        """A run, perhaps one of the trials, may have logged something."""
        if self._trials is not None and self._trials.note_report(run_id):
            self._tell_watchers()
            if self._open_spec.policy.kind != "none":
                self._wake.set()

    # For clients

    @property
    def progress(self) -> str:
        """The progress in one sentence."""
        if self._trials is None or self._spec is None:
            return ""
        going = len(self._trials.history.going)
        ended = len(self._trials) - going
        sentence = f"{ended} of at most {self._spec.max_total_runs} trials have ended, {going} are on their way"
        return f"{self._ending.reason}; {sentence}" if self._ending else sentence

    @property
    def going(self) -> list[str]:
        """The run ids of the trials that have not ended."""
        return [trial.run_id for trial in self._trials.going()] if self._trials else []

    def view(self, since: int = -1) -> tuple[SweepView, int] | None:
        """The view of the sweep with the trials that changed after version `since`, and the current version."""
        if self._trials is None or self._spec is None:
            return None
        self._trials.read_reports()
        record = self._record
        view = sweep_view(
            self._spec,
            record.id,
            record.experiment,
            record.status,
            self._trials.views(self._spec.goal, since),
            started_at=record.started_at,
            ended_at=record.ended_at,
            ending=self._ending.reason if self._ending else "",
            warnings=tuple(self._said),
            waiting_for=self.progress,
        )
        return view, self._trials.version

    # From start to end

    async def drive(self) -> None:
        """Brings the sweep to its end, whatever happens on the way."""
        backoff = Backoff()
        while True:
            try:
                await self._go_on()
                return
            except (WorkspaceException, OSError) as error:
                # Mostly a full disk. Waiting loses nothing.
                log.warning("sweep %s cannot go on yet: %s", self.run_id, error)
            except TrainmasterError as error:
                self._fail(error.message)
            except Exception as error:
                log.exception("sweep %s", self.run_id)
                self._fail(f"Trainmaster failed: {error!r}; see {self._folder.log}")
            if self._record.status in TERMINAL:
                return
            self._take_up_trials()
            await backoff.sleep()

    def close(self) -> None:
        """Closes files and cancels timers."""
        if self._reports is not None:
            self._reports.close()
        if self._log is not None:
            self._log.close()
        if self._news is not None:
            self._news.cancel()

    async def _go_on(self) -> None:
        self._open()
        while True:
            self._wake.clear()
            if self._carry_out(await self._plan()):
                return
            await self._wait_for_change()

    def _open(self) -> None:
        """Reads the sweep from the store."""
        if self._trials is not None:
            return
        kept = self._store.sweeps.get(self.run_id)
        if kept is None:
            raise TrainmasterError(f"the description of sweep {self.run_id} is missing")
        self._ending = _ending_of(kept)
        folder = self._folder.run(self.run_id)
        self._log = self._log or SweepLog(folder.logs / LOG_NAME)
        spec = load_sweep(kept.spec, f"the description of sweep {self.run_id}")
        # The job as submit accepted it, for its target.
        self._spec = replace(spec, job=load_spec(self._record.spec))
        self._plain_job = to_plain(self._spec.job)
        trials = Trials(self._store, self.run_id, spec.metric)
        if spec.policy.kind != "none":
            self._reports = Reports(self._updates.bring_in_or_log)
        self._trials = trials
        self._watch(trials.going())
        self._log.say_what_is_missing(self._lines())
        moved = self._updates.move(self.run_id, Status.RUNNING, expect=(Status.NOT_STARTED,))
        self._record = moved or self._store.runs.get(self.run_id) or self._record

    @property
    def _open_spec(self) -> SweepSpec:
        assert self._spec is not None
        return self._spec

    @property
    def _open_trials(self) -> Trials:
        assert self._trials is not None
        return self._trials

    def _lines(self) -> list[str]:
        """The lines that the log should have about the existing trials."""
        lines: list[str] = []
        for trial in self._open_trials.records:
            lines.append(start_line(trial))
            lines += [trial.cut] if trial.cut else []
            if trial.status in TERMINAL:
                lines.append(end_line(trial, self._best(trial), self._open_spec.metric))
        return lines

    async def _plan(self) -> Plan:
        self._open_trials.read_reports()
        spec, room = self._open_spec, self._room()
        if room != spec.max_concurrent_runs:
            spec = replace(spec, max_concurrent_runs=room)
        started_at = self._record.started_at or self._record.created_at
        state = SweepState(started_at, self._open_trials.history, self._cancel, self._ending)
        if spec.sampling.kind != "bayesian":
            return plan(spec, state, time.time())
        # In a thread, because sampling takes time and trials continue meanwhile.
        state = replace(state, history=History(self._open_trials.ordered))
        planned = await asyncio.to_thread(plan, spec, state, time.time())
        # A sweep that was canceled meanwhile starts no more trials.
        return planned if state.cancel_requested == self._cancel else Plan()

    def _room(self) -> int:
        """How many trials may run at once: at most as many as the target has nodes for, and quotas allow."""
        spec = self._open_spec
        target = self._scheduler.targets().get(self._record.target)
        if target is None:
            return 1
        nodes = spec.job.node_count
        allowed = self._scheduler.quotas().count_allowed(
            Use(self._record.submitted_by, nodes, nodes * target.gpus_per_node)
        )
        most = min(spec.max_concurrent_runs, target.nodes // nodes)
        return max(1, most if allowed is None else min(most, allowed))

    async def _wait_for_change(self) -> None:
        started_at = self._record.started_at or self._record.created_at
        left = deadline(self._open_spec, started_at) - time.time()
        timeout = max(0.0, left) if self._ending is None else None
        try:
            await asyncio.wait_for(self._wake.wait(), timeout)
        except TimeoutError:
            return

    def _carry_out(self, todo: Plan) -> bool:
        """Carries out a plan in its order; returns whether the sweep has ended."""
        self._warn(todo.warnings)
        self._keep_decisions(todo.decisions)
        if todo.ending is not None and todo.ending != self._ending:
            self._end(todo.ending)
        self._cancel_trials(todo.cancels)
        self._start(todo.starts)
        if todo.finish is None:
            return False
        self._finish(todo.finish)
        return True

    def _warn(self, warnings: tuple[str, ...]) -> None:
        new = [warning for warning in warnings if warning not in self._said]
        if not new:
            return
        self._store.runs.add_warnings(self.run_id, *new)
        for warning in new:
            self._said[warning] = None
            self._say(f"warning: {warning}")

    def _keep_decisions(self, decisions: tuple[Decision, ...]) -> None:
        if not decisions:
            return
        decided = [(each.number, each.interval, each.words if each.cut else "") for each in decisions]
        ending = self._store.sweeps.judge_trials(self.run_id, decided, at=time.time())
        self._open_trials.note_decisions(decisions, [run.id for run in ending])
        for run in ending:
            log.info("run %s is %s", run.id, run.status)
            self._watchers.tell(run)
            self._runs.cancel(run.id)
        for decision in decisions:
            self._say(decision.words)

    def _end(self, ending: Ending) -> None:
        self._store.sweeps.set_ending(self.run_id, ending.status, ending.reason)
        self._ending = ending
        self._say(f"no more trials: {ending.reason}")

    def _cancel_trials(self, cancels: tuple[Cancel, ...]) -> None:
        for each in cancels:
            trial = self._open_trials.record(each.number)
            # The policy has already ended this trial.
            if not trial.cut and self._updates.move(trial.run_id, Status.CANCEL_REQUESTED) is not None:
                self._runs.cancel(trial.run_id)

    def _start(self, starts: tuple[Start, ...]) -> None:
        if not starts:
            return
        now = time.time()
        spec, folder = self._open_spec, self._folder
        new = [new_trial(self._record, spec, self._plain_job, start, folder, now) for start in starts]
        if self._is_prepared:
            new = [replace(each, run=self._with_nodes(each.run)) for each in new]
        try:
            runs = self._store.sweeps.add_trials(self.run_id, [(each.trial, each.run) for each in new])
        except BaseException:
            for each in new:
                self._scheduler.release(each.run.id)
            raise
        trials = [each.trial for each in new]
        self._open_trials.add(trials)
        for each, run in zip(new, runs, strict=True):
            self._runs.take(run, self._sources, each.job)
        self._watch(trials)
        for trial in trials:
            self._say(start_line(trial))
        self._tell_watchers()

    def _with_nodes(self, run: RunRecord) -> RunRecord:
        """Gives the run free nodes, if there are any, so that it starts without waiting in the queue."""
        nodes = self._scheduler.take_free_nodes(request_of(run, self._open_spec.job))
        return replace(run, status=Status.STARTING, nodes=nodes) if nodes else run

    def _watch(self, trials: list[TrialRecord]) -> None:
        if self._reports is not None:
            for trial in trials:
                self._reports.watch(trial.run_id, self._folder.run(trial.run_id))

    def _finish(self, ending: Ending) -> None:
        self._say(f"the sweep is {ending.status}: {ending.reason}")
        error = RunError(ERROR_CODE, ending.reason) if ending.status is Status.FAILED else None
        self._record = self._updates.move(self.run_id, ending.status, error=error) or self._record

    def _fail(self, reason: str) -> None:
        """Ends the sweep with an error: no more trials, and the active ones are canceled."""
        if self._trials is not None and self._ending is None:
            self._end(Ending(Status.FAILED, reason))
            return
        # Its description cannot be read, or ending it failed too.
        self._cancel_children()
        error = RunError(ERROR_CODE, reason)
        self._record = self._updates.move(self.run_id, Status.FAILED, error=error) or self._record

    def _cancel_children(self) -> None:
        query = RunQuery(parent_id=self.run_id, include_children=True, statuses=tuple(map(str, ACTIVE)), limit=100_000)
        for run in self._store.runs.find(query):
            if self._updates.move(run.id, Status.CANCEL_REQUESTED) is not None:
                self._runs.cancel(run.id)

    def _take_up_trials(self) -> None:
        """Drives the trials that are in the store, after an error."""
        for run_id in self.going:
            run = self._store.runs.get(run_id)
            if run is not None:
                self._runs.take(run, self._sources)

    def _best(self, trial: TrialRecord) -> float | None:
        found = self._open_trials.trial(trial.number)
        best = found.best(self._open_spec.goal) if found.has_value else None
        return None if best is None or math.isinf(best) else best

    def _say(self, line: str) -> None:
        if self._log is not None:
            # Lines that do not fit on the disk are written when the sweep is opened again.
            with suppress(OSError):
                self._log.say(line)

    def _tell_watchers(self) -> None:
        """Announces that trials have changed, several changes at a time."""
        if self._news is None and self._watchers.is_watched(self.run_id):
            self._news = asyncio.get_running_loop().call_later(_NEWS_SECONDS, self._tell_now)

    def _tell_now(self) -> None:
        self._news = None
        self._watchers.tell(self._record)


def _ending_of(kept: SweepRecord) -> Ending | None:
    return Ending(Status(kept.ending_status), kept.ending_reason) if kept.ending_status else None


def is_sweep(record: RunRecord) -> bool:
    """Whether a run is a sweep."""
    return record.type == SWEEP_TYPE
