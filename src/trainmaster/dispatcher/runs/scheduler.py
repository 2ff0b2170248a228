"""The scheduler: which run gets which nodes of which target, and what the others wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.capacity import Request, decide
from trainmaster.dispatcher.runs.throw_away import target_again
from trainmaster.engines import Engine
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.hardware import local_target
from trainmaster.shared.job_spec import THROW_AWAY, load_spec
from trainmaster.shared.records import RunRecord, TargetRecord


class Scheduler:
    """Knows the targets, the nodes that runs hold, and the queue of runs that wait for nodes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue: dict[str, tuple[Request, asyncio.Future[tuple[int, ...]]]] = {}
        self._held: dict[str, dict[str, tuple[int, ...]]] = {}
        """Target to run id to nodes."""
        self._reasons: dict[str, str] = {}
        self._targets: dict[str, TargetRecord] | None = None
        """The targets of the store, which every step of a run needs; None after a change."""
        self._own_targets: dict[str, TargetRecord] = {}
        """Run id to the cluster that was created for this run."""

    # Targets

    def targets(self) -> dict[str, TargetRecord]:
        """All targets by name. `local`, which is this machine, always exists."""
        if self._targets is None:
            local = local_target()
            stored = self._context.store.targets.list_all()
            self._targets = {local.name: local, **{target.name: target for target in stored}}
        return {**self._targets, **{target.name: target for target in self._own_targets.values()}}

    def target(self, name: str) -> TargetRecord:
        """The target of this name; `local` if it has been deleted."""
        local = local_target()
        return local if name == local.name else self.targets().get(name) or local

    def engine(self, target: str) -> Engine:
        """The engine of a target."""
        return self._context.engines.get(self.target(target).engine)

    def targets_changed(self) -> None:
        """Reads the targets again: one was created, changed or deleted."""
        self._targets = None
        self._assign()

    def add_run(self, record: RunRecord) -> None:
        """Creates the cluster of a run that has its own, and notes the nodes that the run holds already."""
        if record.target.startswith(THROW_AWAY) and record.target not in self.targets():
            # A specification that cannot be read fails its run, not the dispatcher.
            with suppress(TrainmasterError):
                target = target_again(record.id, load_spec(record.spec), self._context.folder)
                if target is not None:
                    self._own_targets[record.id] = target
        if record.nodes:
            self._held.setdefault(record.target, {})[record.id] = record.nodes

    def remove_run(self, run_id: str) -> None:
        """Releases everything that a run held."""
        self.release(run_id)
        self._own_targets.pop(run_id, None)

    # Nodes

    @contextmanager
    def queue(self, request: Request) -> Iterator[asyncio.Future[tuple[int, ...]]]:
        """Queues a run while the block runs; the future receives its nodes."""
        future: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()
        self._queue[request.run_id] = (request, future)
        self._assign()
        try:
            yield future
        finally:
            if self._queue.pop(request.run_id, None):
                self._assign()

    def take_free_nodes(self, run_id: str, target: str, count: int) -> tuple[int, ...]:
        """Takes nodes for a run if they are free and no other run waits for nodes; else returns none."""
        if self._queue or self._engine_queues(target):
            return ()
        decision = decide([Request(run_id, target, count)], self._held, self.targets())
        nodes = decision.starts.get(run_id, ())
        if nodes:
            self._held.setdefault(target, {})[run_id] = nodes
        return nodes

    def release(self, run_id: str) -> None:
        """Returns the nodes of a run."""
        for held in self._held.values():
            if held.pop(run_id, None) is not None:
                self._assign()
                return

    @property
    def held_nodes(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Target to run id to the nodes that the run holds."""
        return {target: dict(runs) for target, runs in self._held.items()}

    def waiting_reason(self, run_id: str) -> str:
        """Why a run waits for nodes; empty if it does not."""
        return self._reasons.get(run_id, "")

    def _assign(self) -> None:
        if not self._queue:
            self._reasons = {}
            return
        # In the order in which they were submitted: a run whose environment took long to build keeps its place.
        waiting = sorted((request for request, _ in self._queue.values()), key=lambda request: request.seq)
        targets = self.targets()
        with_queue = {name for name in {each.target for each in waiting} & set(targets) if self._engine_queues(name)}
        decision = decide(waiting, self._held, targets, with_queue)
        self._reasons = dict(decision.reasons)
        for run_id, nodes in decision.starts.items():
            request, future = self._queue.pop(run_id)
            self._held.setdefault(request.target, {})[run_id] = nodes
            if not future.done():
                future.set_result(nodes)

    def _engine_queues(self, target: str) -> bool:
        try:
            return self.engine(target).queues
        except TrainmasterError:
            # The engine is not installed any more. Its runs fail with that error when they start.
            return True
