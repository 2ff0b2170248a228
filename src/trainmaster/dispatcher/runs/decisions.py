"""Decides which runs get which nodes now, and what the others wait for. Pure.

order     by priority, by what users have used lately, and by the time of submission (`waiting.py`)
first     the first run of a target that does not fit gets a reservation (`backfill.py`)
others    may start before it if that does not delay it
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from trainmaster.dispatcher.runs import waiting_words
from trainmaster.dispatcher.runs.backfill import Holding, Reservation, latest_end, reserve
from trainmaster.dispatcher.runs.gpus import find_gpus_used_elsewhere, gpus_of, has_gpus_here
from trainmaster.dispatcher.runs.quotas import QuotaBook, QuotaCheck, Use
from trainmaster.dispatcher.runs.waiting import Closed, Request, WaitingRuns
from trainmaster.shared.hardware import node_gpus
from trainmaster.shared.records import TargetRecord

BACKFILL_DEPTH = 500
"""How many runs behind the first one are looked at. The effort of a decision must not grow with the queue."""

Held = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Target to run to the nodes that it holds."""


@dataclass(frozen=True)
class Occupation:
    """The targets, and who holds their nodes."""

    targets: Mapping[str, TargetRecord]
    held: Held = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    """Each run that holds nodes to its user."""
    ends: Mapping[str, float] = field(default_factory=dict)
    """Runs that hold nodes, and when they return them at the latest, as far as that is known."""
    queue_themselves: Collection[str] = ()
    """Targets with a queue of their own: they get every run at once, up to `max_jobs` at a time."""


@dataclass(frozen=True)
class Decision:
    """Which runs start now on which nodes, and why the others wait."""

    starts: Mapping[str, tuple[int, ...]]
    _situation: tuple[WaitingRuns, Occupation, QuotaBook | None, Mapping[str, float], float] = field(
        compare=False, repr=False
    )

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """A sentence for each run that waits. Unlike a decision, this looks at every one of them."""
        return explain(*self._situation)


def decide(
    queue: WaitingRuns | Iterable[Request],
    now: Occupation,
    quotas: QuotaBook | None = None,
    penalties: Mapping[str, float] | None = None,
    at: float = 0.0,
) -> Decision:
    """Walks the queue in order; the first run that does not fit gets a reservation on its target.

    Targets may share the GPUs of this machine. A GPU is not given to a run if a run of another target uses it or has
    waited for it longer. A run that a quota holds back does not hold back runs of others. `penalties` are the seconds
    by which the runs of a user come later.
    """
    waiting = queue if isinstance(queue, WaitingRuns) else WaitingRuns(queue)
    closed = Closed()
    walk = _Round(now, quotas, at, closed)
    for request in waiting.iterate(penalties or {}, closed):
        walk.consider(request)
    return Decision(walk.starts, (waiting, now, quotas, penalties or {}, at))


def explain(
    waiting: WaitingRuns,
    now: Occupation,
    quotas: QuotaBook | None,
    penalties: Mapping[str, float],
    at: float,
) -> Mapping[str, str]:
    """Why each run waits: the same walk, but to the end of the queue."""
    walk = _Round(now, quotas, at, Closed())
    places: dict[str, int] = {}
    found: dict[str, tuple[Request, int]] = {}
    for request in waiting.iterate(penalties):
        walk.consider(request)
        if request.run_id not in walk.starts:
            place = places[request.target] = places.get(request.target, 0) + 1
            found[request.run_id] = request, place
    return _Reasons(found, walk, penalties)


class _Room:
    """The nodes of one target, and the first run that waits for them."""

    def __init__(self, target: TargetRecord, runs: Mapping[str, tuple[int, ...]], ends: Mapping[str, float]) -> None:
        self.target = target
        self.runs = dict(runs)
        self._ends = {run_id: ends.get(run_id, math.inf) for run_id in runs}
        taken = {node for nodes in runs.values() for node in nodes}
        self.free = [node for node in range(target.nodes) if node not in taken]
        self.first: Request | None = None
        self.reservation: Reservation | None = None
        """For the first run that waits, if others may start before it."""
        self.gpus_taken: Mapping[str, str] = {}
        self.looked_at = 0

    def take(self, request: Request, nodes: tuple[int, ...], until: float) -> None:
        self.runs[request.run_id], self._ends[request.run_id] = nodes, until
        self.free = [node for node in self.free if node not in nodes]

    def reserve(self, at: float) -> None:
        """Reserves nodes for the first run."""
        assert self.first is not None
        # A target that has become smaller has runs on nodes that it does not have any more.
        sizes = {run_id: sum(node < self.target.nodes for node in nodes) for run_id, nodes in self.runs.items()}
        holdings = [Holding(size, self._ends[run_id]) for run_id, size in sizes.items()]
        self.reservation = reserve(self.first.least_nodes(at), len(self.free), holdings, at)


class _Round:
    """One walk along the queue."""

    def __init__(self, now: Occupation, quotas: QuotaBook | None, at: float, closed: Closed) -> None:
        self.starts: dict[str, tuple[int, ...]] = {}
        self.notes: dict[str, str] = {}
        """What holds runs back, if it is not that others hold the nodes of their target."""
        self._now = now
        self._at = at
        self._closed = closed
        self._rooms: dict[str, _Room] = {}
        self._waited_for: dict[str, dict[str, str]] = {}
        """Target to its GPUs, and the run that waits for them."""
        has_quotas = quotas is not None and bool(quotas.quotas)
        self._check = QuotaCheck(quotas, find_uses(now)) if quotas is not None and has_quotas else None

    def least_nodes(self, request: Request) -> int:
        """With how many nodes a run would start now."""
        return request.least_nodes(self._at)

    def room(self, name: str) -> _Room | None:
        """The nodes of a target; None if it does not exist any more."""
        if name not in self._rooms and name in self._now.targets:
            self._rooms[name] = _Room(self._now.targets[name], self._now.held.get(name, {}), self._now.ends)
        return self._rooms.get(name)

    def consider(self, request: Request) -> None:
        """Starts a run if it may start."""
        room = self.room(request.target)
        if room is None:
            self.notes[request.run_id] = waiting_words.say_target_is_gone(request.target)
            self._closed.targets.add(request.target)
        elif request.target in self._now.queue_themselves:
            self._hand_over(request, room)
        elif room.first is not None:
            self._start_before_first(request, room)
        elif self._keeps_quotas(request, room):
            usable = self._find_usable(room)
            count = self._choose_count(request, room, len(usable))
            if count:
                self._start(request, room, usable, count)
            else:
                self._wait_first(request, room)

    def _choose_count(self, request: Request, room: _Room, usable: int) -> int:
        """With how many of the usable nodes a run starts now; 0 if it does not. An elastic run takes what it can."""
        least = request.least_nodes(self._at)
        for count in range(min(request.node_count, usable), least, -1):
            if self._check is None or self._check.fit(_use(request, room.target, count)):
                return count
        # That it keeps its quotas with the fewest nodes is known.
        return least if least <= usable else 0

    def _hand_over(self, request: Request, room: _Room) -> None:
        """Gives a run to a target with a queue of its own."""
        if not self._keeps_quotas(request, room):
            return
        most = room.target.options.get("max_jobs")
        if not most or len(room.runs) < most:
            self._start(request, room, range(request.node_count), request.node_count)
            return
        self.notes[request.run_id] = f"waiting: '{request.target}' is given {most} runs at a time"

    def _wait_first(self, request: Request, room: _Room) -> None:
        """Nobody who comes later may take the nodes that this run waits for."""
        room.first = request
        self._waited_for[request.target] = dict.fromkeys(gpus_of(room.target), request.run_id)
        if not room.gpus_taken:
            room.reserve(self._at)
        self._close_if_full(room)

    def _start_before_first(self, request: Request, room: _Room) -> None:
        """Starts a run if the first one that waits is not delayed by it."""
        room.looked_at += 1
        if room.looked_at > BACKFILL_DEPTH:
            self._closed.targets.add(request.target)
            return
        reservation = room.reservation
        if reservation is None or request.least_nodes(self._at) > len(room.free):
            return
        until = latest_end(self._at, request.seconds)
        usable = len(room.free) if reservation.is_after(until) else min(len(room.free), reservation.spare)
        if request.least_nodes(self._at) > usable or not self._keeps_quotas(request, room):
            return
        count = self._choose_count(request, room, usable)
        if not reservation.is_after(until) and not self._leaves_quota(request, room, count):
            return
        self._start(request, room, room.free, count)
        room.reserve(self._at)
        self._close_if_full(room)

    def _close_if_full(self, room: _Room) -> None:
        """Looks at no more runs of a target that can start none of them."""
        reservation = room.reservation
        if reservation is None or not room.free or (reservation.spare == 0 and math.isinf(reservation.at)):
            self._closed.targets.add(room.target.name)

    def _leaves_quota(self, request: Request, room: _Room, count: int) -> bool:
        """Whether the first run would keep its quotas beside this one."""
        assert room.first is not None
        first = _use(room.first, room.target, room.first.least_nodes(self._at))
        return self._check is None or self._check.fit(_use(request, room.target, count), first)

    def _keeps_quotas(self, request: Request, room: _Room) -> bool:
        use = _use(request, room.target, request.least_nodes(self._at))
        reason = self._check.find_reason(use) if self._check else ""
        if reason:
            self.notes[request.run_id] = reason
            if self._check and self._check.holds_back_all(request.user):
                self._closed.users.add(request.user)
        return not reason

    def _find_usable(self, room: _Room) -> list[int]:
        """The free nodes whose GPUs no run of another target uses or has waited for longer."""
        target = room.target
        if not has_gpus_here(target):
            return room.free
        others = {name: gpus for name, gpus in self._waited_for.items() if name != target.name}
        waiting = {gpu: run for gpus in others.values() for gpu, run in gpus.items()}
        holders = {**self._now.held, **{name: each.runs for name, each in self._rooms.items()}}
        taken = room.gpus_taken = {**waiting, **find_gpus_used_elsewhere(target, holders, self._now.targets)}
        return [node for node in room.free if taken.keys().isdisjoint(node_gpus(target, node))]

    def _start(self, request: Request, room: _Room, nodes: Iterable[int], count: int) -> None:
        chosen = self.starts[request.run_id] = tuple(nodes)[:count]
        room.take(request, chosen, latest_end(self._at, request.seconds))
        if self._check is not None:
            self._check.add(_use(request, room.target, count))


class _Reasons(Mapping[str, str]):
    """Sentences, each written when it is read: few of thousands are."""

    def __init__(self, found: Mapping[str, tuple[Request, int]], walk: _Round, penalties: Mapping[str, float]) -> None:
        self._found = found
        self._walk = walk
        self._penalties = penalties

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, run_id: str) -> str:
        request, place = self._found[run_id]
        note, room = self._walk.notes.get(run_id), self._walk.room(request.target)
        if note is not None or room is None:
            return note or ""
        reason = waiting_words.say_who_holds(
            self._walk.least_nodes(request), room.target, room.runs, len(room.free), room.gpus_taken
        )
        return waiting_words.say_place(place, reason, request.user if request.user in self._penalties else None)


def find_uses(now: Occupation) -> dict[str, Use]:
    """What each run that holds nodes counts for quotas. The GPUs are those of its nodes."""
    found: dict[str, Use] = {}
    for name, runs in now.held.items():
        gpus = now.targets[name].gpus_per_node if name in now.targets else 0
        for run_id, nodes in runs.items():
            found[run_id] = Use(now.users.get(run_id, ""), len(nodes), len(nodes) * gpus)
    return found


def _use(request: Request, target: TargetRecord, nodes: int) -> Use:
    return Use(request.user, nodes, nodes * target.gpus_per_node)
