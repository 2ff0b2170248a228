"""The life of one run, from queued to ended (docs/internals/run-lifecycle.md tells the same in words)."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.dispatcher.api.datasets import register_outputs
from trainmaster.dispatcher.processes import Shortage
from trainmaster.dispatcher.runs import agents, attempts, files
from trainmaster.dispatcher.runs.attempt_results import AttemptResults, find_attempt_results, is_full
from trainmaster.dispatcher.runs.capacity import Request
from trainmaster.dispatcher.runs.marks import Mark, mark_of, marked
from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.dispatcher.runs.preparing import Preparation, after_job, prepare, prepare_again
from trainmaster.dispatcher.runs.start import GRACE_SECONDS, agent_plans, lay_down, write_spec_again
from trainmaster.dispatcher.store.connection import is_trouble
from trainmaster.engines import Ending, Engine, Nodes
from trainmaster.engines.plans import read_claim
from trainmaster.job.agent import claim
from trainmaster.job.agent.shortage import is_passing
from trainmaster.job.errors import TrainmasterError, WorkspaceException
from trainmaster.launch import agent_count, most_processes, port_count
from trainmaster.shared.attempts import FailedAttempt, count_failed, current_attempt, failed_attempts
from trainmaster.shared.job_spec import JobSpec, has_data, load_spec
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError, RunRecord, Status
from trainmaster.shared.retry import Backoff, retry

if TYPE_CHECKING:
    from trainmaster.dispatcher.runs.scheduler import Scheduler

T = TypeVar("T")

log = logging.getLogger("trainmaster.dispatch")

# Beyond the grace the agent has itself for its processes; an agent that takes longer is killed.
_AGENT_PATIENCE_SECONDS = 30.0

# A trial of a sweep that takes no longer than this is never seen Running.
_BRIEF_SECONDS = 0.1

_NOT_BEGUN = frozenset({Status.NOT_STARTED, Status.PREPARING, Status.QUEUED})

# What does not get better by waiting: a script may have removed or replaced the folders of its own run.
_HOPELESS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP})


class _Canceled(Exception):
    """The run was cancelled before it had processes."""


class RunDriver:
    """Drives one run. Every step can be repeated: the next dispatcher begins where the store says."""

    def __init__(
        self,
        record: RunRecord,
        scheduler: Scheduler,
        sources: Mapping[str, str] | None = None,
        spec: JobSpec | None = None,
    ) -> None:
        """`sources` are the submitter's variables for package sources, while they are known.

        `spec` is the record's, of a run that is new and has nothing on the disk yet.
        """
        self._spec = spec
        self.run_id = record.id
        self._doing = ""
        self._record = record
        self._scheduler = scheduler
        self._sources = sources
        self._folder = scheduler.folder.run(record.id)
        # Not an event: that would take a task of its own wherever work is waited for.
        self._cancel: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._mark = mark_of(record.properties)
        self._news = asyncio.Event()
        self._disk_full = False
        self._laid_down = False
        # Of the many short runs of a sweep nobody sees each state: fewer steps, the same end.
        self._is_trial = scheduler.sweep(record.parent_id or "") is not None
        if record.status is Status.CANCEL_REQUESTED:
            self.cancel()

    def cancel(self) -> None:
        """The user wants it to end."""
        if not self._cancel.done():
            self._cancel.set_result(None)

    def mark(self, mark: Mark) -> None:
        """Somebody outside has given it a state, which is its own once its script has ended."""
        self._mark = mark

    async def kill(self) -> None:
        """Ends its processes at once, without regard for what they were doing."""
        if self._record.nodes:
            nodes = self._nodes(load_spec(self._record.spec))
            await self._engine.kill(nodes)
            await self._engine.sweep(nodes)

    def seen_running(self, at: float | None = None) -> None:
        """The agent says that the script has started."""
        if self._record.status is Status.QUEUED:
            # It waited in the engine's own queue, and whoever looks at its files may have seen this late.
            running = read_json(self._folder.node(0) / "running.json") or {}
            at = at or running.get("started_at")
            self._move(Status.STARTING, at=at, expect=(Status.QUEUED,))
        self._move(Status.RUNNING, at=at, expect=(Status.STARTING,), durable=not self._is_trial)

    def seen_done(self) -> None:
        """The agent of a node says that only services are left there."""
        self._news.set()

    async def drive(self) -> None:
        """Brings the run to its end, whatever happens on the way."""
        backoff = Backoff()
        while True:
            try:
                await self._go_on()
                return
            except _Canceled:
                await self._finish(Status.CANCELED)
                return
            except Exception as error:  # noqa: BLE001 (told in `_fail`)
                if not _is_passing(error):
                    await self._fail(error)
                    return
                log.warning("run %s cannot go on yet: %s", self.run_id, error)
                self._doing = f"waiting until the run can go on: {error}"
            if self._cancel.done():
                await backoff.sleep()
            else:
                await asyncio.wait({self._cancel}, timeout=backoff.next_pause())
            with suppress(TrainmasterError):
                self._return_to_store()

    async def _go_on(self) -> None:
        spec = self._spec or load_spec(self._record.spec, where=f"the specification of run {self.run_id}")
        if self._spec is None:
            self._folder = current_attempt(self._folder)
        else:
            self._scheduler.ingest.begin(self.run_id)
        if not self._record.nodes:
            await self._begin(spec)
        elif self._spec is None:
            await self._take_up(spec)
        else:
            await self._start_again(spec, None)
        await self._until_gone(spec)
        while await self._patiently(lambda: self._is_retried(spec)):
            await self._begin_again(spec)
            await self._until_gone(spec)
        await self._patiently(lambda: self._end(spec))

    def _return_to_store(self) -> None:
        """What was begun is continued from what the store says, as the next dispatcher would."""
        self._record = self._scheduler.store.runs.get(self.run_id) or self._record
        self._spec = None
        self._doing = ""
        if not self._record.nodes:
            self._scheduler.release(self.run_id)

    async def _fail(self, error: Exception) -> None:
        if isinstance(error, TrainmasterError | OSError):
            await self._finish(Status.FAILED, error=self._error(error))
            return
        # A fault of ours must not leave the run hanging, nor end the dispatcher.
        log.error("run %s", self.run_id, exc_info=error)
        message = f"Trainmaster failed: {error!r}\nSee {self._scheduler.folder.log}."
        await self._finish(Status.FAILED, error=RunError("InternalError", message))

    def _error(self, error: TrainmasterError | OSError) -> RunError:
        is_lost = self._laid_down and isinstance(error, FileNotFoundError) and not self._folder.spec.exists()
        if not is_lost:
            return run_error(error)
        message = f"the folder of the run was removed while it went on: {self._folder.path}"
        return RunError("RunFolderLost", f"{message}\nIts logs and files are gone. Submit it again.")

    async def _begin(self, spec: JobSpec) -> None:
        """Environment, data, nodes, agents."""
        prepared = await self._or_cancel(self._prepared(spec))
        request = Request(self.run_id, self._record.target, spec.node_count, self._record.seq)
        self._doing = ""
        with self._scheduler.queued(request) as turn:
            if not turn.done():
                self._move(Status.QUEUED, expect=(Status.NOT_STARTED, Status.PREPARING))
            nodes = await self._or_cancel(turn)
        lay_down(self._folder, self._record)
        first = Status.QUEUED if self._engine.queues else Status.STARTING
        if not self._move(first, nodes=nodes, expect=tuple(_NOT_BEGUN)):
            raise _Canceled
        await self._start(spec, prepared, self._new_ports(spec))

    def _new_ports(self, spec: JobSpec) -> tuple[int, ...]:
        return self._scheduler.ports.take(self.run_id, port_count(spec))

    async def _start(self, spec: JobSpec, prepared: Preparation, ports: tuple[int, ...]) -> None:
        nodes = self._nodes(spec)
        place = self._engine.place(nodes)
        used = sum(failed.seconds for failed in failed_attempts(self._folder))
        brief = _BRIEF_SECONDS if self._is_trial else 0
        attempt = self._folder.attempt
        plans = agent_plans(self._record, spec, prepared, place, self._scheduler.folder, ports, attempt, used, brief)
        starting = asyncio.ensure_future(self._engine.start(nodes, plans, prepared.kit))
        try:
            await asyncio.wait({starting, self._cancel}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                # What takes long to start, such as an environment on its way to a host, is not waited for.
                await self._engine.stop(nodes)
            await starting
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    async def _take_up(self, spec: JobSpec) -> None:
        """Goes on with a run that an earlier dispatcher had given nodes."""
        write_spec_again(self._folder, self._record)
        claimed = [read_claim(self._folder.node(number)) for number in range(agent_count(spec))]
        plan = read_json(self._folder.node(0) / "plan.json")
        if plan is None and self._folder.attempt > 1:
            await self._begin_again(spec)
            return
        ports = tuple((plan or {}).get("ports", ()))
        self._scheduler.ports.note(self.run_id, ports)
        if self._cancel.done():
            self._claim_what_is_left(spec)
            return
        was_starting = self._record.status in (Status.QUEUED, Status.STARTING)
        if (self._folder.node(0) / "running.json").exists():
            self.seen_running()
        if None in claimed and was_starting:
            # An agent may or may not be on its way; a second one does no harm, since the claim is made once.
            # Nodes that have begun already count on the ports of the plan they have.
            await self._start_again(spec, None if plan is None else ports)

    async def _begin_again(self, spec: JobSpec) -> None:
        """The next attempt, on the same nodes and in the same working folder."""
        failed = failed_attempts(self._folder)[-1]
        of = "" if failed.again else f" of {spec.max_retries + 1}"
        sentence = f"attempt {failed.number}{of} failed: {failed.headline}"
        await self._patiently(lambda: self._set_logs_apart(f"{sentence}; starting attempt {self._folder.attempt}"))
        self._move(Status.STARTING, expect=(Status.RUNNING,))
        self._doing = f"{sentence}; attempt {self._folder.attempt} starts in a moment"
        await self._start_again(spec, None, attempts.pause_seconds(failed, time.time(), _first_pause()))
        self._doing = ""

    async def _start_again(self, spec: JobSpec, ports: tuple[int, ...] | None, pause: float = 0.0) -> None:
        try:
            prepared = await self._or_cancel(self._prepared(spec, pause))
        except _Canceled:
            # No agent may begin any more; what there is, is brought in as after any other cancel.
            self._claim_what_is_left(spec)
            return
        lay_down(self._folder, self._record)
        await self._start(spec, prepared, self._new_ports(spec) if ports is None else ports)

    async def _set_logs_apart(self, sentence: str) -> None:
        failed = replace(self._folder, attempt=self._folder.attempt - 1)
        attempts.set_logs_apart(failed, sentence)

    async def _prepared(self, spec: JobSpec, pause: float = 0.0) -> Preparation:
        await asyncio.sleep(pause)
        prepare_now = prepare if self._folder.attempt == 1 else prepare_again
        return await prepare_now(self._record, spec, self._scheduler, self._sources, self._say_preparing)

    def _claim_what_is_left(self, spec: JobSpec) -> None:
        """Takes the claims that no agent has yet, so that one still on its way finds them taken."""
        for number in range(agent_count(spec)):
            if read_claim(self._folder.node(number)) is None:
                self._claim(number)

    def _claim(self, number: int) -> None:
        folder = self._folder.node(number)
        folder.mkdir(parents=True, exist_ok=True)
        claim.make(str(folder), None, cancelled=True)

    async def _until_gone(self, spec: JobSpec) -> None:
        """Waits for the agents; a cancel request on the way is passed on to them."""
        self._laid_down = True
        nodes = self._nodes(spec)
        gone = asyncio.ensure_future(agents.gone(self._engine, nodes, spec, self._news))
        try:
            await asyncio.wait({gone, self._cancel}, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                self._claim_what_is_left(spec)
                await self._engine.stop(nodes)
                limit = GRACE_SECONDS + _AGENT_PATIENCE_SECONDS
                await asyncio.wait({gone}, timeout=limit)
            if not gone.done():
                log.warning("run %s: its agent does not end; killing it", self.run_id)
                await self._engine.kill(nodes)
            await gone
        finally:
            gone.cancel()

    async def _is_retried(self, spec: JobSpec) -> bool:
        """Whether the attempt that ended is followed by another; then why it failed is kept."""
        if self._cancel.done() or self._mark is not None or self._record.status is Status.FINALIZING:
            return False
        ending = await self._engine.ending(self._nodes(spec))
        if count_failed(self._folder) >= spec.max_retries and not (ending and ending.again):
            return False
        remains = await self._remains(spec)
        end = self._outcome(remains, ending)
        self._seen_started(remains)
        last = count_failed(self._folder) >= spec.max_retries and not end.again
        if end.error is None or last or not attempts.deserves_another(end, remains.has_survivors):
            return False
        await self._scheduler.bring_in(self.run_id)
        remains.write_processes()
        self._keep_warnings(end)
        self._scheduler.end_children(self.run_id, Status.FAILED)
        number, error = self._folder.attempt, end.error
        failed = FailedAttempt(number, error, remains.started_at, remains.ended_at, end.again)
        attempts.note_failure(self._folder, failed)
        self._folder = current_attempt(self._folder)
        # The next attempt may find room again.
        self._disk_full = False
        return True

    async def _end(self, spec: JobSpec) -> None:
        """Everything the run left is brought in; only then does it get its terminal state."""
        nodes = self._nodes(spec)
        # Asked before anything is cleared away: an engine may not tell that from an end that came from elsewhere.
        ending = None if self._cancel.done() else await self._engine.ending(nodes)
        remains = await self._remains(spec)
        facts = await self._engine.release(nodes)
        if self._is_trial and not facts and await self._end_at_once(remains, ending):
            return
        self._seen_started(remains)
        self._move(Status.FINALIZING, expect=(Status.STARTING, Status.RUNNING))
        upload_error = await after_job(self._record, spec, self._scheduler)
        files.collect(self._folder)
        await self._scheduler.bring_in(self.run_id)
        if facts:
            self._scheduler.store.runs.add_properties(self.run_id, facts)
        remains.write_processes()
        await self._flush()
        # From here to the end without a pause: a mark is applied, or it comes too late.
        own = _with_left(self._outcome(remains, ending, upload_error), remains)
        end = self._final(own)
        self._keep_warnings(end)
        if own.status is end.status is Status.COMPLETED:
            register_outputs(self.run_id, spec, self._scheduler.store)
        self._move(end.status, error=end.error, at=remains.ended_at_or_now)

    def _final(self, end: Outcome) -> Outcome:
        """The outcome as people see it: an error says how many attempts there were, and a mark goes before it."""
        error = attempts.with_attempts(end.error, end.status, self._folder.attempt)
        return marked(replace(end, error=error), self._mark)

    async def _end_at_once(self, remains: AttemptResults, ending: Ending | None) -> bool:
        """All of it in one step, where nothing takes time; whether it was done."""
        if has_data(remains.spec):
            return False
        files.collect(self._folder)
        remains.write_processes()
        await self._flush()
        end = self._final(_with_left(self._outcome(remains, ending), remains))
        started = remains.started_at
        changes = {} if started is None or self._record.started_at else {"started_at": started}
        at = remains.ended_at_or_now
        record = self._scheduler.finish(self.run_id, end.status, at, end.warnings, error=end.error, **changes)
        if record is not None:
            self._record = record
        return record is not None

    async def _flush(self) -> None:
        """What a run left is on the disk before it is called ended."""
        try:
            await asyncio.to_thread(files.flush, self._folder)
        except OSError as error:
            if error.errno not in _HOPELESS:
                raise
            log.warning("run %s: its files may be lost in a power cut: %s", self.run_id, error)

    async def _remains(self, spec: JobSpec) -> AttemptResults:
        # Asked first: a script that could not write its own last words for lack of room is explained by this.
        self._disk_full = self._disk_full or is_full(self._folder.path)
        return await find_attempt_results(self._engine, self._nodes(spec), spec, self._scheduler.secrets)

    def _seen_started(self, remains: AttemptResults) -> None:
        """What the agents left says when it began, if nobody has said so before."""
        if remains.started_at is not None:
            self.seen_running(at=remains.started_at)

    def _outcome(self, remains: AttemptResults, ending: Ending | None, upload_error: str = "") -> Outcome:
        return remains.outcome(
            ending, cancel_requested=self._cancel.done(), disk_full=self._disk_full, upload_error=upload_error
        )

    def _keep_warnings(self, end: Outcome) -> None:
        if end.warnings:
            self._scheduler.store.runs.add_warnings(self.run_id, *end.warnings)

    async def _or_cancel(self, work: Awaitable[Any]) -> Any:
        """The result of `work`, unless the run is cancelled first: then the work is ended."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._cancel}, return_when=asyncio.FIRST_COMPLETED)
            if self._cancel.done():
                raise _Canceled
            return await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @property
    def _engine(self) -> Engine:
        return self._scheduler.engine(self._record.target)

    def _nodes(self, spec: JobSpec) -> Nodes:
        return Nodes(
            run_id=self.run_id,
            folder=self._folder,
            count=agent_count(spec),
            target=self._scheduler.target(self._record.target),
            numbers=self._record.nodes,
            processes_per_node=most_processes(spec),
            seconds=spec.max_run_duration_seconds,
        )

    @property
    def doing(self) -> str:
        """A sentence for a run that is not waiting for nodes of ours but not running either."""
        if self._doing or not self._record.nodes or self._record.status not in (Status.QUEUED, Status.STARTING):
            return self._doing
        return self._waits_in_engine()

    def _waits_in_engine(self) -> str:
        try:
            spec = load_spec(self._record.spec)
            return self._engine.waiting_for(self._nodes(spec))
        except TrainmasterError:
            return ""

    def _say_preparing(self, sentence: str) -> None:
        self._doing = sentence
        self._move(Status.PREPARING, expect=(Status.NOT_STARTED,))

    def _move(self, to: Status, **changes: Any) -> bool:
        expect = changes.get("expect")
        if expect is not None and self._record.status not in expect:
            # Nobody else moves it, but for a request to cancel, which leads to no state that is expected anywhere.
            return False
        record = self._scheduler.move(self.run_id, to, **changes)
        if record is not None:
            self._record = record
        return record is not None

    async def _finish(self, status: Status, error: RunError | None = None) -> None:
        """The terminal state, written as soon as the store can be written."""

        async def write() -> None:
            if self._folder.attempt > 1:
                await self._bring_in_earlier_attempts()
            await self._flush()
            end = self._final(Outcome(status, error))
            self._keep_warnings(end)
            self._move(end.status, error=end.error)

        await self._patiently(write)

    async def _bring_in_earlier_attempts(self) -> None:
        """What the attempts before left, where the one that was to follow could not be started."""
        try:
            files.collect(self._folder)
        except OSError as error:
            log.warning("run %s: its files stay in its working folder: %s", self.run_id, error)
        await self._scheduler.bring_in(self.run_id)

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Does `work`, again and again while the disk is full: what a run left is not lost for lack of space."""

        def tell(error: Exception) -> None:
            log.warning("run %s cannot be brought to its end yet: %s", self.run_id, error)
            self._doing = f"waiting to write the end of the run: {error}"

        errors = (WorkspaceException, OSError, RuntimeError)
        return await retry(work, *errors, should_retry=_may_still_be_written, on_error=tell)


def _may_still_be_written(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno not in _HOPELESS
    return not isinstance(error, RuntimeError) or bool(is_passing(error))


def _is_passing(error: Exception) -> bool:
    """Whether the run can go on in a while: something is short on the machine, or the database cannot be used."""
    return bool(is_passing(error)) or is_trouble(error) or isinstance(error, Shortage)


def _with_left(end: Outcome, remains: AttemptResults) -> Outcome:
    return replace(end, warnings=(*end.warnings, *remains.left_warnings))


def _first_pause() -> float:
    """Seconds between the first failure and the second attempt."""
    try:
        given = float(os.environ.get("TRAINMASTER_RETRY_SECONDS", "1"))
    except ValueError:
        return 1.0
    return given if 0 <= given <= 3600 else 1.0


def run_error(error: TrainmasterError | OSError) -> RunError:
    """An error on the way of a run, as the run's own."""
    if isinstance(error, TrainmasterError):
        return RunError(type(error).__name__.removesuffix("Exception") + "Error", error.message)
    place = f": {error.filename}" if error.filename else ""
    return RunError("SystemError", f"{error.strerror or error}{place}")
