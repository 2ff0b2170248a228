"""The scheduler: runs that have not ended, the queue for nodes, and the clients that watch runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.api.secrets import Secrets
from trainmaster.dispatcher.runs import owners
from trainmaster.dispatcher.runs.capacity import Request, decide
from trainmaster.dispatcher.runs.driver import RunDriver
from trainmaster.dispatcher.runs.dry_run import Situation
from trainmaster.dispatcher.runs.job_requests import JobRequests
from trainmaster.dispatcher.runs.journals import Ingest
from trainmaster.dispatcher.runs.marks import Mark, mark_of, mark_property
from trainmaster.dispatcher.runs.ports import Ports
from trainmaster.dispatcher.runs.removal import Removal
from trainmaster.dispatcher.runs.throw_away import target_again
from trainmaster.dispatcher.services import Services
from trainmaster.dispatcher.store import Store
from trainmaster.dispatcher.sweeps.driver import SweepDriver, is_sweep
from trainmaster.engines import Engine, EngineContext, make_engine
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import local_target
from trainmaster.shared.job_spec import THROW_AWAY, JobSpec, load_spec
from trainmaster.shared.owner import Owner, owner_of
from trainmaster.shared.records import ACTIVE, TERMINAL, RunError, RunQuery, RunRecord, Status, TargetRecord
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# How often the journals of running runs are looked at. Whoever asks for metrics gets them up to date at once.
_INGEST_SECONDS = 2.0
# How long ending all runs may take, some of them on other machines.
_KILL_SECONDS = 10.0


class Scheduler:
    """Keeps every run that has not ended moving, and the store true."""

    def __init__(self, folder: WorkspaceFolder, store: Store) -> None:
        self.folder = folder
        self.store = store
        self.ingest = Ingest(store)
        self.secrets = Secrets(folder, store)
        self.ports = Ports()
        self.job_requests = JobRequests(folder)
        self.services = Services(self)
        self.removal = Removal(self)
        self.builds: dict[str, Path] = {}
        """Environments that are being built, by their digests, to the logs of their builders."""
        self._engines: dict[str, Engine] = {}
        self._drivers: dict[str, RunDriver] = {}
        self._sweeps: dict[str, SweepDriver] = {}
        self._working = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue: dict[str, tuple[Request, asyncio.Future[tuple[int, ...]]]] = {}
        self._held: dict[str, dict[str, tuple[int, ...]]] = {}
        self._reasons: dict[str, str] = {}
        self._targets: dict[str, TargetRecord] | None = None
        """Those of the store, which every step of a run asks for."""
        self._own_targets: dict[str, TargetRecord] = {}
        """Run id to the cluster that was made for it."""
        self._owners: set[Owner] = set()
        self._watchers: dict[str, set[asyncio.Queue[dict[str, Any]]]] = {}
        self._ticker: asyncio.Task[None] | None = None
        self._reading: set[str] = set()
        """The runs whose journals are being read because it was time to."""
        self._troubles: dict[str, str] = {}
        """Run id to the error because of which its journals could not be read last time."""

    @property
    def busy(self) -> bool:
        """Whether any run is on its way, work is done that a client asked for, or services have to be kept."""
        return bool(self._drivers or self._sweeps or self._working or self.services.busy)

    @contextmanager
    def working(self) -> Iterator[None]:
        """While a client waits for long work, the dispatcher is not idle."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    def engine(self, target: str) -> Engine:
        """The engine of a target."""
        return self.engine_named(self.target(target).engine)

    def engine_named(self, name: str) -> Engine:
        """One of each kind, made when it is first needed."""
        if name not in self._engines:
            around = EngineContext(self.folder, self.heard_from_agent, self._secret, self.job_requests.receive)
            self._engines[name] = make_engine(name, around)
        return self._engines[name]

    def _secret(self, name: str) -> str | None:
        found = self.secrets.get([name])[name]
        return found["value"] if found else None

    def target(self, name: str) -> TargetRecord:
        """A target; for one that is not there any more, this machine."""
        local = local_target()
        return local if name == local.name else self.targets().get(name) or local

    def targets(self) -> dict[str, TargetRecord]:
        """Name to target; `local` is always there, as large as this machine."""
        if self._targets is None:
            local = local_target()
            self._targets = {local.name: local, **{target.name: target for target in self.store.targets.list_all()}}
        return {**self._targets, **{target.name: target for target in self._own_targets.values()}}

    def take(self, record: RunRecord, sources: Mapping[str, str] | None = None, spec: JobSpec | None = None) -> None:
        """Starts to drive a run, or goes on with one that an earlier dispatcher left.

        `spec` is what the record says, if the caller has it at hand.
        """
        if record.id in self._drivers or record.id in self._sweeps or record.status in TERMINAL:
            return
        if record.target.startswith(THROW_AWAY) and record.target not in self.targets():
            self._give_own_target(record)
        if is_sweep(record):
            self._sweeps[record.id] = SweepDriver(record, self, sources)
            self._start(f"sweep {record.id}", partial(self._drive_sweep, record.id))
            return
        self._drivers[record.id] = RunDriver(record, self, sources, spec)
        if record.nodes:
            self._held.setdefault(record.target, {})[record.id] = record.nodes
        self._start(f"run {record.id}", partial(self._drive, record.id))
        if self._ticker is None or self._ticker.done():
            self._ticker = self._start("reading journals", self._tick)

    def _start(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        task = start_task(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _give_own_target(self, record: RunRecord) -> None:
        # A specification that cannot be read fails its run, not the dispatcher.
        with suppress(TrainmasterError):
            target = target_again(record.id, load_spec(record.spec), self.folder)
            if target is not None:
                self._own_targets[record.id] = target

    async def _drive(self, run_id: str) -> None:
        try:
            await self._drivers[run_id].drive()
        except Exception:
            record = self.store.runs.get(run_id)
            if record is not None and record.status not in TERMINAL:
                # Started again, it continues from the store, as under the next dispatcher.
                self._drivers[run_id] = RunDriver(record, self)
                raise
            log.exception("run %s", run_id)
        del self._drivers[run_id]
        self.ingest.forget(run_id)
        self._troubles.pop(run_id, None)
        self.ports.release(run_id)
        self.release(run_id)
        self._own_targets.pop(run_id, None)

    async def _drive_sweep(self, run_id: str) -> None:
        sweep = self._sweeps[run_id]
        await sweep.drive()
        sweep.close()
        del self._sweeps[run_id]
        self._own_targets.pop(run_id, None)

    def resume(self) -> None:
        """Goes on with what an earlier dispatcher had begun besides runs."""
        self.services.resume()
        self._start("removal", self.removal.resume)

    async def until_left(self, run_id: str) -> None:
        """Returns when nothing is done for a run that has ended any more."""
        while run_id in self._drivers or run_id in self._sweeps:
            await asyncio.sleep(0.01)

    def sweep(self, run_id: str) -> SweepDriver | None:
        """The sweep of this id, while it goes."""
        return self._sweeps.get(run_id)

    async def _tick(self) -> None:
        """While runs go: their journals into the store, now and then."""
        while self._drivers:
            await asyncio.sleep(_INGEST_SECONDS)
            for run_id in [run_id for held in self._held.values() for run_id in held]:
                self._begin_to_read(run_id)

    def _begin_to_read(self, run_id: str) -> None:
        """In a task of its own: a run with much to read does not hold up the others."""
        if run_id not in self._reading:
            self._reading.add(run_id)
            task = self._start(f"journals of run {run_id}", partial(self.bring_in_or_log, run_id))
            task.add_done_callback(lambda _: self._reading.discard(run_id))

    async def bring_in_or_log(self, run_id: str) -> None:
        """An error is logged when it first occurs: the journals of one run must not hold up those of others."""
        try:
            await self.bring_in(run_id)
            self._troubles.pop(run_id, None)
        except Exception as error:
            if repr(error) != self._troubles.get(run_id):
                self._troubles[run_id] = repr(error)
                log.exception("run %s: its journals cannot be read for now", run_id)

    async def bring_in(self, run_id: str) -> None:
        """Brings all a run has written so far into the store."""
        await self.ingest.bring_in(run_id, self.folder.run(run_id))
        for sweep in self._sweeps.values():
            sweep.reported(run_id)
        # A journal may have told the end of a child.
        for watched in [each for each in self._watchers if each not in self._drivers]:
            record = self.store.runs.get(watched)
            if record is not None and record.status in TERMINAL:
                self.tell(record)

    def end_with_owner(self, record: RunRecord) -> None:
        """A run without a job will end with the program that logs to it."""
        owner = owner_of(record.properties)
        if owner is None or owner in self._owners or not owner.is_here:
            return
        self._owners.add(owner)
        task = self._start(f"owner {owner.pid}", partial(owners.end_with, owner, self))
        task.add_done_callback(lambda _: self._owners.discard(owner))

    def cancel(self, run_id: str) -> None:
        """Passes a cancel request on to the run."""
        life = self._drivers.get(run_id) or self._sweeps.get(run_id)
        if life is not None:
            life.cancel()

    def mark(self, run_id: str, mark: Mark) -> None:
        """Gives a submitted run the state it will have when its script has ended. The first mark stands."""
        record = self.store.runs.get(run_id)
        if record is None or record.status in (*TERMINAL, Status.CANCEL_REQUESTED) or mark_of(record.properties):
            return
        self.store.runs.add_properties(run_id, mark_property(mark))
        life = self._drivers.get(run_id)
        if life is not None:
            life.mark(mark)
        self.store.runs.add_warnings(run_id, mark.notice)

    def heard_from_agent(self, run_id: str, event: str) -> None:
        """An agent said something: its script runs, or only services are left. The end is seen by itself."""
        life = self._drivers.get(run_id)
        if life is not None and event == "running":
            life.seen_running()
        elif life is not None and event == "done":
            life.seen_done()

    # The queue

    @contextmanager
    def queued(self, request: Request) -> Iterator[asyncio.Future[tuple[int, ...]]]:
        """A place in the queue; the future gives the nodes. Leaving gives the place up."""
        future: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()
        self._queue[request.run_id] = (request, future)
        self._assign()
        try:
            yield future
        finally:
            if self._queue.pop(request.run_id, None):
                self._assign()

    def nodes_at_once(self, run_id: str, target: str, count: int) -> tuple[int, ...]:
        """Nodes for a run, held from now on, if they are free and nobody waits for some; else none."""
        if self._queue or self._queues(target):
            return ()
        decision = decide([Request(run_id, target, count)], self._held, self.targets())
        nodes = decision.starts.get(run_id, ())
        if nodes:
            self._held.setdefault(target, {})[run_id] = nodes
        return nodes

    def situation(self) -> Situation:
        """Targets, held nodes and the runs without nodes at this moment, for a dry run."""
        held = {target: dict(runs) for target, runs in self._held.items()}
        without = [run for run in self.store.runs.list_active() if run.spec and not run.nodes and not is_sweep(run)]
        waiting = [Request(run.id, run.target, load_spec(run.spec).node_count, run.seq) for run in without]
        return Situation(self.folder, self.targets(), self.engine_named, held, sorted(waiting, key=lambda run: run.seq))

    def release(self, run_id: str) -> None:
        """Gives the nodes of a run back."""
        for held in self._held.values():
            if held.pop(run_id, None) is not None:
                self._assign()
                return

    def _assign(self) -> None:
        if not self._queue:
            self._reasons = {}
            return
        # In the order they were submitted: a run whose environment took long to build keeps its place.
        waiting = sorted((request for request, _ in self._queue.values()), key=lambda each: each.seq)
        targets = self.targets()
        queue_themselves = {name for name in {each.target for each in waiting} & set(targets) if self._queues(name)}
        decision = decide(waiting, self._held, targets, queue_themselves)
        self._reasons = dict(decision.reasons)
        for run_id, nodes in decision.starts.items():
            request, future = self._queue.pop(run_id)
            self._held.setdefault(request.target, {})[run_id] = nodes
            if not future.done():
                future.set_result(nodes)

    def _queues(self, target: str) -> bool:
        try:
            return self.engine(target).queues
        except TrainmasterError:
            # An engine that is not installed any more: its runs will hear of it when they start.
            return True

    def targets_changed(self) -> None:
        """A target was made larger, smaller or removed."""
        self._targets = None
        self._assign()

    def described(self, record: RunRecord) -> RunRecord:
        """The record with the reason it waits for, which lives here and not in the store."""
        reason = self._reasons.get(record.id)
        life = self._drivers.get(record.id) or self._sweeps.get(record.id)
        if reason is None and life is not None:
            reason = life.doing
        if record.status is Status.QUEUED and record.nodes:
            # To say what it waits for, its engine looked: it may have been seen to run.
            record = self.store.runs.get(record.id) or record
            reason = reason if record.status is Status.QUEUED else None
        if not reason or record.status in TERMINAL:
            return record
        return replace(record, waiting_for=reason)

    # The states

    def move(self, run_id: str, to: Status, **changes: Any) -> RunRecord | None:
        """One guarded change of state; tells the watchers. None if the run was not in a state that allows it."""
        if to in TERMINAL:
            self.end_children(run_id, to)
        at = changes.pop("at", None) or time.time()
        record = self.store.runs.move(run_id, to, at=at, **changes)
        if record is not None:
            log.info("run %s is %s", run_id, to)
            self.tell(record)
        return record

    def finish(self, run_id: str, to: Status, at: float, warnings: Sequence[str], **changes: Any) -> RunRecord | None:
        """The rest of a run's journals and its terminal state in one step; None if it takes more than one."""
        batches = self.ingest.rest(run_id, self.folder.run(run_id))
        if batches is None:
            return None
        self.end_children(run_id, to)
        record = self.store.journals.finish_run(run_id, to, at=at, batches=batches, warnings=warnings, **changes)
        if record is not None:
            log.info("run %s is %s", run_id, to)
            self.tell(record)
        return record

    def end_children(self, run_id: str, to: Status) -> None:
        """Children without a job end with their parent, and before it: then a killed dispatcher leaves none behind."""
        if not self.store.runs.has_active_children(run_id):
            return
        query = RunQuery(
            parent_id=run_id, recursive=True, include_children=True, statuses=tuple(map(str, ACTIVE)), limit=100_000
        )
        error = None
        if to is Status.FAILED:
            error = RunError("ParentFailed", f"run {run_id}, of which this is a part, failed before this was completed")
        for child in self.store.runs.find(query):
            if child.id not in self._drivers:
                ended = self.store.runs.move(child.id, to, at=time.time(), error=error)
                if ended is not None:
                    self.tell(ended)

    def tell(self, record: RunRecord) -> None:
        """Tells those who watch this run, and the sweep that it is or belongs to."""
        own, parent = self._sweeps.get(record.id), self._sweeps.get(record.parent_id or "")
        if own is not None:
            own.seen(record)
        if parent is not None:
            parent.heard(record)
        for queue in self._watchers.get(record.id, ()):
            queue.put_nowait(news(record))

    def is_watched(self, run_id: str) -> bool:
        """Whether anybody wants to hear of this run."""
        return run_id in self._watchers

    @contextmanager
    def watched(self, run_id: str) -> Iterator[asyncio.Queue[dict[str, Any]]]:
        """News of one run."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._watchers.setdefault(run_id, set()).add(queue)
        try:
            yield queue
        finally:
            self._watchers[run_id].discard(queue)
            if not self._watchers[run_id]:
                del self._watchers[run_id]

    async def end_runs(self) -> None:
        """Ends the processes of all runs at once. What they leave behind is brought in nowhere."""
        await self._cancel_tasks()
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                await asyncio.gather(*(life.kill() for life in self._drivers.values()), return_exceptions=True)
        except TimeoutError:
            log.warning("not all runs could be ended within %.0f s", _KILL_SECONDS)

    async def _cancel_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Lets go of all runs; they go on by themselves and are taken up by the next dispatcher."""
        await self._cancel_tasks()
        for sweep in self._sweeps.values():
            sweep.close()
        self.ingest.close()
        await self.job_requests.close()
        await self.services.close()
        for engine in self._engines.values():
            await engine.close()


def news(record: RunRecord) -> dict[str, Any]:
    """What a watcher is told."""
    return {"run_id": record.id, "status": record.status, "ended": record.status in TERMINAL}
