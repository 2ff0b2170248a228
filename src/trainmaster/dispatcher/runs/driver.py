"""Drives one run from submitted to ended (docs/internals/run-lifecycle.md describes the same steps)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.processes import Shortage
from trainmaster.dispatcher.runs import agents, attempts, elastic, files
from trainmaster.dispatcher.runs.attempt_results import AttemptResults, find_attempt_results, is_full
from trainmaster.dispatcher.runs.marks import Mark
from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.dispatcher.runs.preparing import Preparation, prepare, prepare_again
from trainmaster.dispatcher.runs.procedures import HOPELESS, EndedJob, FullProcedure, Procedure, flush_files
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.start import GRACE_SECONDS, agent_plans, lay_down, write_spec_again
from trainmaster.dispatcher.runs.state import RunState
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.runs.waiting import request_of
from trainmaster.dispatcher.store.connection import is_trouble
from trainmaster.engines import Engine, FewerNodesError, Nodes
from trainmaster.engines.plans import read_claim
from trainmaster.job.agent import claim
from trainmaster.job.agent.shortage import is_temporary
from trainmaster.job.errors import TrainmasterError, WorkspaceException
from trainmaster.launch import agent_count, most_processes, port_count
from trainmaster.shared.attempts import FailedAttempt, count_failed, current_attempt, read_failed_attempts
from trainmaster.shared.job_spec import JobSpec, load_spec
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError, RunRecord, Status
from trainmaster.shared.retry import Backoff, retry

T = TypeVar("T")

log = logging.getLogger("trainmaster.dispatch")

# How much longer than the grace time of its processes an agent may take to end; after that it is killed.
_AGENT_PATIENCE_SECONDS = 30.0

_NOT_BEGUN = frozenset({Status.NOT_STARTED, Status.PREPARING, Status.QUEUED})


class _CanceledError(Exception):
    """The run was canceled before it had processes."""


class RunDriver:
    """Drives one run. Every step can be repeated: the next dispatcher continues from what the store says."""

    def __init__(
        self,
        record: RunRecord,
        context: Context,
        scheduler: Scheduler,
        updates: RunUpdates,
        procedure: Procedure | None = None,
        sources: Mapping[str, str] | None = None,
        new_spec: JobSpec | None = None,
    ) -> None:
        """`sources` are the submitter's variables for package sources, while they are known.

        `new_spec` is the specification of a run that was just created and has nothing on disk yet.
        """
        self.run_id = record.id
        self._context = context
        self._scheduler = scheduler
        self._updates = updates
        self._procedure = procedure or FullProcedure()
        self._sources = sources
        self._new_spec = new_spec
        self._state = RunState(record, context, updates, commits_running=self._procedure.commits_running)
        self._progress = ""
        self._agent_news = asyncio.Event()
        self._has_folder = False

    # What others tell the driver

    def cancel(self) -> None:
        """A user wants the run to end."""
        self._state.request_cancel()

    def mark(self, mark: Mark) -> None:
        """A user has set the state that the run gets when its script has ended."""
        self._state.mark = mark

    def see_running(self) -> None:
        """An agent reports that the script has started."""
        self._state.see_running()

    def see_done(self) -> None:
        """An agent reports that only services are left on its node."""
        self._agent_news.set()

    async def kill(self) -> None:
        """Ends the processes of the run at once."""
        if self._record.nodes:
            nodes = self._nodes(load_spec(self._record.spec))
            await self._engine.kill(nodes)
            await self._engine.sweep(nodes)

    @property
    def engine_name(self) -> str:
        """The engine of the run's target."""
        return self._scheduler.target(self._record.target).engine

    @property
    def has_begun(self) -> bool:
        """Whether the run is past all queues, so that its script may have written something."""
        return self._record.status not in _NOT_BEGUN

    @property
    def progress(self) -> str:
        """A sentence for a run that waits, but not for nodes of the scheduler; else empty."""
        # The end of a run that was cancelled may have to wait for its machines.
        is_waiting = self._state.is_canceled or self._record.status in (Status.QUEUED, Status.STARTING)
        if self._progress or not self._record.nodes or not is_waiting:
            return self._progress
        try:
            return self._engine.waiting_for(self._nodes(load_spec(self._record.spec)))
        except TrainmasterError:
            return ""

    # From submitted to ended

    async def drive(self) -> None:
        """Brings the run to its end, whatever happens on the way."""
        backoff = Backoff()
        while True:
            try:
                await self._go_on()
                return
            except _CanceledError:
                await self._finish(Status.CANCELED)
                return
            except Exception as error:  # noqa: BLE001 (`_fail` reports it)
                if not _is_temporary(error):
                    await self._fail(error)
                    return
                log.warning("run %s cannot go on yet: %s", self.run_id, error)
                self._progress = f"waiting until the run can go on: {error}"
            if self._state.is_canceled:
                await backoff.sleep()
            else:
                await asyncio.wait({self._state.cancel_request}, timeout=backoff.next_pause())
            with suppress(TrainmasterError):
                self._return_to_store()

    async def _go_on(self) -> None:
        state, new_spec = self._state, self._new_spec
        spec = new_spec or load_spec(self._record.spec, where=f"the specification of run {self.run_id}")
        if new_spec is None:
            state.folder = current_attempt(state.folder)
        else:
            self._updates.begin(self.run_id)
        if not self._record.nodes:
            await self._begin(spec)
        elif new_spec is None:
            await self._adopt(spec)
        else:
            await self._start_attempt(spec, None)
        await self._wait_for_agents(spec)
        while await self._retry_until_written(lambda: self._is_retried(spec)):
            await self._begin_next_attempt(spec)
            await self._wait_for_agents(spec)
        await self._retry_until_written(lambda: self._end(spec))

    def _return_to_store(self) -> None:
        """Starts over from what the store says, as the next dispatcher would."""
        self._state.reload()
        self._new_spec = None
        self._progress = ""
        if not self._record.nodes:
            self._scheduler.release(self.run_id)

    async def _begin(self, spec: JobSpec) -> None:
        """Prepares environment and data, waits for nodes, and starts agents."""
        prepared = await self._unless_canceled(self._prepare(spec))
        self._progress = ""
        with self._scheduler.queue(request_of(self._record, spec, time.time())) as turn:
            if not turn.done():
                self._state.move(Status.QUEUED, expect=(Status.NOT_STARTED, Status.PREPARING))
            nodes = await self._unless_canceled(turn)
        lay_down(self._state.folder, self._record)
        if elastic.is_elastic(spec):
            elastic.keep_members(self._state.folder, tuple(range(len(nodes))))
            self._say_fewer(len(nodes), spec)
        first = Status.QUEUED if self._engine.queues else Status.STARTING
        if not self._state.move(first, nodes=nodes, expect=tuple(_NOT_BEGUN)):
            raise _CanceledError
        await self._start_agents(spec, prepared, self._take_ports(spec))

    def _say_fewer(self, count: int, spec: JobSpec) -> None:
        if count < spec.node_count:
            waited = f"the others were not free within {spec.distribution.wait_seconds} s"
            self._context.store.runs.add_warnings(
                self.run_id, f"the run starts with {count} of {spec.node_count} nodes: {waited}"
            )

    def _take_ports(self, spec: JobSpec) -> tuple[int, ...]:
        return self._context.ports.take(self.run_id, port_count(spec))

    async def _start_agents(self, spec: JobSpec, prepared: Preparation, ports: tuple[int, ...]) -> None:
        """Starts the agents; those of an elastic run on fewer nodes, if its engine does not have all."""
        while True:
            try:
                return await self._start_planned_agents(spec, prepared, ports)
            except FewerNodesError as fewer:
                elastic.keep_fewer(spec, self._state.folder, fewer.count)
                self._say_fewer(fewer.count, spec)
            if self._state.is_canceled:
                return self._take_free_claims(spec)

    async def _start_planned_agents(self, spec: JobSpec, prepared: Preparation, ports: tuple[int, ...]) -> None:
        folder = self._state.folder
        nodes = self._nodes(spec)
        plans = agent_plans(
            self._record,
            elastic.spec_of_attempt(spec, folder),
            prepared,
            self._engine.place(nodes),
            self._context.folder,
            ports,
            attempt=folder.attempt,
            time_used=sum(failed.seconds for failed in read_failed_attempts(folder)),
            tell_after=self._procedure.tell_after_seconds,
        )
        starting = asyncio.ensure_future(self._engine.start(nodes, plans, prepared.kit))
        try:
            await asyncio.wait({starting, self._state.cancel_request}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                # A start may take long, for example while an environment is copied to a host.
                await self._engine.stop(nodes)
            await starting
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    async def _adopt(self, spec: JobSpec) -> None:
        """Continues a run to which an earlier dispatcher had given nodes."""
        folder = self._state.folder
        write_spec_again(folder, self._record)
        claims = [read_claim(folder.node(number)) for number in range(self._nodes(spec).count)]
        plan = read_json(folder.node(0) / "plan.json")
        if plan is None and folder.attempt > 1:
            await self._begin_next_attempt(spec)
            return
        ports = tuple((plan or {}).get("ports", ()))
        self._context.ports.note(self.run_id, ports)
        if self._state.is_canceled:
            self._take_free_claims(spec)
            return
        was_starting = self._record.status in (Status.QUEUED, Status.STARTING)
        if (folder.node(0) / "running.json").exists():
            self._state.see_running()
        if None in claims and was_starting:
            # The agent may already be on its way. A second agent is harmless, because only one can take the claim.
            # Nodes that have started rely on the ports of their plan.
            await self._start_attempt(spec, None if plan is None else ports)

    async def _begin_next_attempt(self, spec: JobSpec) -> None:
        """Starts the next attempt in the same working folder, on the same nodes, or on those that are left."""
        number = self._state.folder.attempt
        words = await self._choose_members(spec)
        failed = read_failed_attempts(self._state.folder)[-1]
        total = "" if failed.again else f" of {spec.max_retries + 1}"
        sentence = f"attempt {failed.number}{total} failed: {failed.headline}"
        await self._retry_until_written(lambda: self._set_logs_apart(f"{sentence}; starting attempt {number}{words}"))
        self._state.move(Status.STARTING, expect=(Status.RUNNING,))
        self._progress = f"{sentence}; attempt {number} starts in a moment{words}"
        await self._start_attempt(spec, None, attempts.pause_seconds(failed, time.time(), attempts.first_pause()))
        self._progress = ""

    async def _choose_members(self, spec: JobSpec) -> str:
        """Decides on which nodes an elastic run goes on; in words if these are not all."""
        if not elastic.is_elastic(spec):
            return ""
        folder = self._state.folder
        if not folder.members.exists():
            lost = elastic.find_lost(spec, replace(folder, attempt=folder.attempt - 1))
            self._take_more_nodes(spec)
            away = await self._engine.find_unreachable(self._nodes(spec))
            elastic.keep_members(folder, elastic.choose_members(spec, len(self._record.nodes), lost | away))
        count = len(elastic.read_members(spec, folder))
        return "" if count == spec.node_count else f" on {count} of {spec.node_count} nodes"

    def _take_more_nodes(self, spec: JobSpec) -> None:
        """A run that started with fewer nodes than it asked for gets those that are free now."""
        record = self._record
        if not self._engine.shares_files:
            # A host that did not take part in the first attempt has no code.
            return
        missing = spec.node_count - len(record.nodes)
        nodes = self._scheduler.take_more_nodes(self.run_id, record.target, missing)
        if len(nodes) > len(record.nodes):
            self._state.replace(self._context.store.runs.update(self.run_id, nodes=nodes))

    async def _start_attempt(self, spec: JobSpec, ports: tuple[int, ...] | None, pause: float = 0.0) -> None:
        try:
            prepared = await self._unless_canceled(self._prepare(spec, pause))
        except _CanceledError:
            # No agent may start any more. What there is of the run is brought in as after any other cancel.
            self._take_free_claims(spec)
            return
        lay_down(self._state.folder, self._record)
        await self._start_agents(spec, prepared, self._take_ports(spec) if ports is None else ports)

    async def _set_logs_apart(self, sentence: str) -> None:
        folder = self._state.folder
        attempts.set_logs_apart(replace(folder, attempt=folder.attempt - 1), sentence)

    async def _prepare(self, spec: JobSpec, pause: float = 0.0) -> Preparation:
        await asyncio.sleep(pause)
        prepare_now = prepare if self._state.folder.attempt == 1 else prepare_again
        return await prepare_now(self._record, spec, self._context, self._engine, self._sources, self._say_preparing)

    def _say_preparing(self, sentence: str) -> None:
        self._progress = sentence
        self._state.move(Status.PREPARING, expect=(Status.NOT_STARTED,))

    def _take_free_claims(self, spec: JobSpec) -> None:
        """Takes the claims that no agent has taken yet, so that an agent on its way cannot start."""
        for number in range(self._nodes(spec).count):
            folder = self._state.folder.node(number)
            if read_claim(folder) is None:
                folder.mkdir(parents=True, exist_ok=True)
                claim.make(str(folder), None, cancelled=True)

    async def _wait_for_agents(self, spec: JobSpec) -> None:
        """Returns when all agents are gone; passes a cancel request on to them."""
        self._has_folder = True
        nodes = self._nodes(spec)
        gone = asyncio.ensure_future(agents.wait_until_gone(self._engine, nodes, spec, self._agent_news))
        try:
            await asyncio.wait({gone, self._state.cancel_request}, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                self._take_free_claims(spec)
                await self._engine.stop(nodes)
                await asyncio.wait({gone}, timeout=GRACE_SECONDS + _AGENT_PATIENCE_SECONDS)
            if not gone.done():
                log.warning("run %s: killing its agent, which does not end", self.run_id)
                await self._engine.kill(nodes)
            await gone
        finally:
            gone.cancel()

    async def _is_retried(self, spec: JobSpec) -> bool:
        """Whether another attempt follows the one that ended; then the failure is recorded."""
        state = self._state
        if state.is_canceled or state.mark is not None or self._record.status is Status.FINALIZING:
            return False
        ending = await self._engine.ending(self._nodes(spec))
        has_retries_left = count_failed(state.folder) < spec.max_retries
        has_lost_nodes = elastic.can_go_on(spec, state.folder)
        if not has_retries_left and not has_lost_nodes and not (ending and ending.again):
            return False
        results = await self._find_results(spec)
        outcome = state.outcome(results, ending)
        state.see_started(results)
        again = outcome.again or has_lost_nodes
        is_last = not has_retries_left and not again
        if outcome.error is None or is_last or not attempts.deserves_another(outcome, results.has_survivors):
            return False
        await self._updates.bring_in(self.run_id)
        results.write_processes()
        state.keep_warnings(outcome)
        self._updates.end_children(self.run_id, Status.FAILED)
        number = state.folder.attempt
        failed = FailedAttempt(number, outcome.error, results.started_at, results.ended_at, again)
        attempts.note_failure(state.folder, failed)
        state.folder = current_attempt(state.folder)
        # The disk may have room again by the next attempt.
        state.is_disk_full = False
        return True

    async def _end(self, spec: JobSpec) -> None:
        """Stores everything that the run left, and only then its terminal state."""
        nodes = self._nodes(spec)
        # Before anything is removed, which an engine might take for an end from outside.
        ending = None if self._state.is_canceled else await self._engine.ending(nodes)
        results = await self._find_results(spec)
        facts = await self._engine.release(nodes)
        await self._procedure.end(EndedJob(self._state, results, ending, facts), self._context, self._updates)

    async def _find_results(self, spec: JobSpec) -> AttemptResults:
        # Before anything is removed: a full disk explains why a script could not write its last lines.
        self._state.is_disk_full = self._state.is_disk_full or is_full(self._state.folder.path)
        nodes, now = self._nodes(spec), elastic.spec_of_attempt(spec, self._state.folder)
        return await find_attempt_results(self._engine, nodes, now, self._context.secrets)

    # Without agents

    async def _fail(self, error: Exception) -> None:
        if isinstance(error, TrainmasterError | OSError):
            await self._finish(Status.FAILED, error=self._describe_error(error))
            return
        # A bug in Trainmaster must neither leave the run unfinished nor end the dispatcher.
        log.error("run %s", self.run_id, exc_info=error)
        message = f"Trainmaster failed: {error!r}\nSee {self._context.folder.log}."
        await self._finish(Status.FAILED, error=RunError("InternalError", message))

    def _describe_error(self, error: TrainmasterError | OSError) -> RunError:
        folder = self._state.folder
        is_lost = self._has_folder and isinstance(error, FileNotFoundError) and not folder.spec.exists()
        if not is_lost:
            return run_error(error)
        message = f"the folder of the run was removed while the run was active: {folder.path}"
        return RunError("RunFolderLost", f"{message}\nIts logs and files are lost. Submit the run again.")

    async def _finish(self, status: Status, error: RunError | None = None) -> None:
        """Writes the terminal state as soon as the store can be written."""

        async def write() -> None:
            if self._state.folder.attempt > 1:
                await self._bring_in_earlier_attempts()
            await flush_files(self._state.folder)
            outcome = self._state.final_outcome(Outcome(status, error))
            self._state.keep_warnings(outcome)
            self._state.move(outcome.status, error=outcome.error)

        await self._retry_until_written(write)

    async def _bring_in_earlier_attempts(self) -> None:
        """Stores what earlier attempts left, if the next attempt could not be started."""
        try:
            files.collect(self._state.folder)
        except OSError as error:
            log.warning("run %s: its files stay in its working folder: %s", self.run_id, error)
        await self._updates.bring_in(self.run_id)

    # How steps are done

    async def _unless_canceled(self, work: Awaitable[Any]) -> Any:
        """The result of `work`; if the run is canceled first, the work is stopped."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._state.cancel_request}, return_when=asyncio.FIRST_COMPLETED)
            if self._state.is_canceled:
                raise _CanceledError
            return await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _retry_until_written(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeats `work` while the disk is full, so that nothing a run left is lost."""

        def tell(error: Exception) -> None:
            log.warning("run %s cannot be brought to its end yet: %s", self.run_id, error)
            self._progress = f"waiting to write the end of the run: {error}"

        errors = (WorkspaceException, OSError, RuntimeError)
        return await retry(work, *errors, should_retry=_may_still_be_written, on_error=tell)

    @property
    def _record(self) -> RunRecord:
        return self._state.record

    @property
    def _engine(self) -> Engine:
        return self._scheduler.engine(self._record.target)

    def _nodes(self, spec: JobSpec) -> Nodes:
        folder = self._state.folder
        numbers = self._record.nodes
        if elastic.is_elastic(spec):
            members = elastic.read_members(spec, folder)
            numbers = tuple(numbers[member] for member in members if member < len(numbers))
        return Nodes(
            run_id=self.run_id,
            folder=folder,
            count=agent_count(elastic.spec_of_attempt(spec, folder)),
            target=self._scheduler.target(self._record.target),
            numbers=numbers,
            processes_per_node=most_processes(spec),
            seconds=spec.max_run_duration_seconds,
            priority=spec.priority,
        )


def _is_temporary(error: Exception) -> bool:
    """Whether waiting may help: the machine lacks a resource, or the database cannot be used."""
    return bool(is_temporary(error)) or is_trouble(error) or isinstance(error, Shortage)


def _may_still_be_written(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno not in HOPELESS
    return not isinstance(error, RuntimeError) or bool(is_temporary(error))


def run_error(error: TrainmasterError | OSError) -> RunError:
    """The error of a run that an exception ended before its script ran."""
    if isinstance(error, TrainmasterError):
        return RunError(type(error).__name__.removesuffix("Exception") + "Error", error.message)
    place = f": {error.filename}" if error.filename else ""
    return RunError("SystemError", f"{error.strerror or error}{place}")
