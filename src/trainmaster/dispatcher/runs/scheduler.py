"""The scheduler: which run gets which nodes of which target, and what the others wait for."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.backfill import latest_end
from trainmaster.dispatcher.runs.decisions import Occupation, decide, explain, find_uses
from trainmaster.dispatcher.runs.disk_use import DiskUse
from trainmaster.dispatcher.runs.fair_share import RecentUse, find_penalties
from trainmaster.dispatcher.runs.quotas import QuotaBook, Use
from trainmaster.dispatcher.runs.throw_away import target_again
from trainmaster.dispatcher.runs.waiting import Request, WaitingRuns, find_time_limit
from trainmaster.engines import Engine
from trainmaster.job.errors import TrainmasterError
from trainmaster.shared.hardware import local_target
from trainmaster.shared.job_spec import THROW_AWAY, load_spec
from trainmaster.shared.records import EACH_USER, WHOLE_WORKSPACE, NodeUse, Quota, QuotaReport, RunRecord, TargetRecord

_LONGEST_TIMER = 3600.0


class Scheduler:
    """Knows the targets, the nodes that runs hold, and the queue of runs that wait for nodes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting = WaitingRuns()
        self._turns: dict[str, asyncio.Future[tuple[int, ...]]] = {}
        """The waiting runs, and what receives their nodes."""
        self._held: dict[str, dict[str, tuple[int, ...]]] = {}
        """Target to run id to nodes."""
        self._users: dict[str, str] = {}
        """The users of the runs that hold nodes."""
        self._since: dict[str, float] = {}
        """Since when they hold them."""
        self._ends: dict[str, float] = {}
        """When those with a time limit return them at the latest."""
        self._recent_use: RecentUse | None = None
        """What users have used; None until two of them want nodes at the same time."""
        self._quotas: QuotaBook | None = None
        """The quotas of the store; None after a change."""
        self._disk_use = DiskUse(context.folder, context.store, self._disk_use_changed)
        self._reasons: Mapping[str, str] | None = None
        """Why runs wait; None until somebody asks."""
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
        # A specification that cannot be read fails its run, not the dispatcher.
        if record.target.startswith(THROW_AWAY) and record.target not in self.targets():
            with suppress(TrainmasterError):
                target = target_again(record.id, load_spec(record.spec), self._context.folder)
                if target is not None:
                    self._own_targets[record.id] = target
        if record.nodes and record.id not in self._held.get(record.target, {}):
            limit = None
            with suppress(TrainmasterError):
                limit = find_time_limit(load_spec(record.spec)) if record.spec else None
            request = Request(record.id, record.target, len(record.nodes), user=record.submitted_by, seconds=limit)
            self._hold(request, record.nodes, record.started_at or record.created_at)

    def remove_run(self, run_id: str) -> None:
        """Releases everything that a run held."""
        self.release(run_id)
        self._own_targets.pop(run_id, None)

    # Nodes

    @contextmanager
    def queue(self, request: Request) -> Iterator[asyncio.Future[tuple[int, ...]]]:
        """Queues a run while the block runs; the future receives its nodes."""
        future: asyncio.Future[tuple[int, ...]] = asyncio.get_running_loop().create_future()
        self._waiting.add(request)
        self._turns[request.run_id] = future
        self._assign()
        self._look_again(request)
        try:
            yield future
        finally:
            if self._turns.pop(request.run_id, None):
                self._waiting.remove(request.run_id)
                self._assign()

    def _look_again(self, request: Request) -> None:
        """Decides again when an elastic run has waited long enough to start with fewer nodes."""
        if math.isinf(request.fewer_at) or request.min_nodes is None or request.run_id not in self._turns:
            return
        rest = request.fewer_at - time.time()
        if rest <= 0:
            self._assign()
            return
        # The clock of the machine may be changed meanwhile.
        asyncio.get_running_loop().call_later(min(rest, _LONGEST_TIMER), self._look_again, request)

    def take_more_nodes(self, run_id: str, target: str, count: int) -> tuple[int, ...]:
        """Gives a run that holds nodes up to `count` more, if they are free and no other run waits for nodes.

        Returns all its nodes. A quota of runs counts the run twice for this moment.
        """
        held = self._held.get(target, {}).get(run_id, ())
        if count < 1 or target in self._waiting.targets or self._engine_queues(target):
            return held
        more = f"{run_id} restarts"
        request = Request(more, target, count, user=self._users.get(run_id, ""), min_nodes=1, fewer_at=0.0)
        found = decide([request], self._occupation(), self.quotas(), at=time.time()).starts.get(more, ())
        if found:
            self._held[target][run_id] = (*held, *found)
            self._reasons = None
        return (*held, *found)

    def take_free_nodes(self, request: Request) -> tuple[int, ...]:
        """Takes nodes for a run if they are free and no other run waits for nodes; else returns none."""
        if self._waiting or self._engine_queues(request.target):
            return ()
        nodes = decide([request], self._occupation(), self.quotas()).starts.get(request.run_id, ())
        if nodes:
            self._hold(request, nodes, time.time())
        return nodes

    def release(self, run_id: str) -> None:
        """Returns the nodes of a run."""
        for held in self._held.values():
            nodes = held.pop(run_id, None)
            if nodes is not None:
                user, since = self._users.pop(run_id, ""), self._since.pop(run_id, math.inf)
                self._ends.pop(run_id, None)
                if self._recent_use is not None:
                    self._recent_use.add(NodeUse(user, len(nodes), since, time.time()))
                self._assign()
                return

    @property
    def held_nodes(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Target to run id to the nodes that the run holds."""
        return {target: dict(runs) for target, runs in self._held.items()}

    def occupation(self) -> Occupation:
        """The targets, and who holds their nodes at this moment."""
        now = self._occupation()
        return Occupation(now.targets, self.held_nodes, dict(now.users), dict(now.ends), now.queue_themselves)

    def waiting_reason(self, run_id: str) -> str:
        """Why a run waits for nodes; empty if it does not."""
        if run_id not in self._turns:
            return ""
        if self._reasons is None:
            now = time.time()
            self._reasons = explain(self._waiting, self._occupation(), self.quotas(), self.penalties(now), now)
        return self._reasons.get(run_id, "")

    def _assign(self) -> None:
        self._reasons = None
        if not self._waiting:
            return
        now = time.time()
        decision = decide(self._waiting, self._occupation(), self.quotas(), self.penalties(now), now)
        for run_id, nodes in decision.starts.items():
            request = self._waiting.remove(run_id)
            assert request is not None
            self._hold(request, nodes, now)
            future = self._turns.pop(run_id)
            if not future.done():
                future.set_result(nodes)

    def _occupation(self) -> Occupation:
        targets = self.targets()
        with_queue = {name for name in self._waiting.targets & set(targets) if self._engine_queues(name)}
        return Occupation(targets, self._held, self._users, self._ends, with_queue)

    def _hold(self, request: Request, nodes: tuple[int, ...], since: float) -> None:
        self._held.setdefault(request.target, {})[request.run_id] = nodes
        self._users[request.run_id] = request.user
        self._since[request.run_id] = since
        if request.seconds is not None:
            self._ends[request.run_id] = latest_end(since, request.seconds)

    # Fair shares

    def penalties(self, now: float) -> dict[str, float]:
        """By how many seconds the runs of users who have used more than their share come later."""
        users = self._waiting.users | set(self._users.values())
        if len(users) < 2:
            return {}
        if self._recent_use is None:
            self._recent_use = RecentUse(self._context.store.runs.read_node_use(now))
        current = [
            NodeUse(self._users[run_id], len(nodes), self._since[run_id], now)
            for runs in self._held.values()
            for run_id, nodes in runs.items()
        ]
        return find_penalties(self._recent_use.count(users, current, now))

    # Quotas

    def quotas(self) -> QuotaBook:
        """The quotas of the workspace, and the disk that counts for them."""
        if self._quotas is None:
            store = self._context.store.quotas
            found = {quota.owner: quota for quota in store.list_all()}
            has_disk = any(quota.disk_bytes is not None for quota in found.values())
            self._quotas = QuotaBook(found, store.read_disk_use() if has_disk else {})
        return self._quotas

    def quotas_changed(self) -> None:
        """Reads the quotas again: one was changed, or disk was freed."""
        self._quotas = None
        self._disk_use.want(any(quota.disk_bytes is not None for quota in self.quotas().quotas.values()))
        self._assign()

    def report_quotas(self) -> list[QuotaReport]:
        """All quotas, and what their owners use now."""
        book = self.quotas()
        uses = find_uses(self._occupation()).values()
        return [_report(quota, book, list(uses)) for quota in book.quotas.values()]

    @property
    def disk_use(self) -> DiskUse:
        """What measures the disk that ended runs take."""
        return self._disk_use

    def _disk_use_changed(self) -> None:
        self._quotas = None
        self._assign()

    def _engine_queues(self, target: str) -> bool:
        try:
            return self.engine(target).queues
        except TrainmasterError:
            # The engine is not installed any more. Its runs fail with that error when they start.
            return True


def _report(quota: Quota, book: QuotaBook, uses: list[Use]) -> QuotaReport:
    if quota.owner == EACH_USER:
        return QuotaReport(quota)
    counted = [use for use in uses if quota.owner in (use.user, WHOLE_WORKSPACE)]
    return QuotaReport(
        quota,
        runs=len(counted),
        nodes=sum(use.nodes for use in counted),
        gpus=sum(use.gpus for use in counted),
        disk_bytes=book.count_disk(quota, quota.owner),
    )
