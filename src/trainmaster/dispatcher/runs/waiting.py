"""The runs that wait for nodes, and their order."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.records import RunRecord

POINT_SECONDS = 3600.0
"""How much waiting one point of priority is worth."""
_UNCHOSEN_SECONDS = 30 * 86400
"""v1's default time limit, which says nothing about a run."""


@dataclass(frozen=True)
class Request:
    """A run that wants nodes."""

    run_id: str
    target: str
    node_count: int
    seq: int = 0
    """The order of submission: smaller is earlier."""
    user: str = ""
    """Who submitted it."""
    priority: int = 0
    submitted_at: float = 0.0
    seconds: float | None = None
    """How long it takes at most, if that is known."""
    min_nodes: int | None = None
    """An elastic run starts with as few nodes as this, once it has waited for all of them until `fewer_at`."""
    fewer_at: float = math.inf

    def least_nodes(self, at: float) -> int:
        """With how many nodes it would start at that time."""
        return self.node_count if self.min_nodes is None or at < self.fewer_at else self.min_nodes

    @property
    def rank(self) -> float:
        """When it would have been submitted, had everybody the same priority."""
        return self.submitted_at - self.priority * POINT_SECONDS


def request_of(run: RunRecord, spec: JobSpec, queued_at: float = math.inf) -> Request:
    """What a run asks for; `queued_at` is when it began to wait for nodes."""
    return Request(
        run.id,
        run.target,
        spec.node_count,
        run.seq,
        run.submitted_by,
        spec.priority,
        run.created_at,
        find_time_limit(spec),
        spec.distribution.min_nodes,
        queued_at + spec.distribution.wait_seconds,
    )


def find_time_limit(spec: JobSpec) -> float | None:
    """How long a job takes at most, if its user has said so."""
    limit = spec.max_run_duration_seconds
    return None if limit is None or limit >= _UNCHOSEN_SECONDS else float(limit)


_Entry = tuple[float, int, int, Request]
"""Sorted by rank, then by the order of submission. The third number keeps requests from being compared."""
_Lane = tuple[str, str]
"""Target and user: within a lane the order never changes, while shares of users change at any time."""


@dataclass
class Closed:
    """Whose runs a walk along the queue leaves out from now on."""

    targets: set[str] = field(default_factory=set)
    users: set[str] = field(default_factory=set)


class WaitingRuns:
    """The waiting runs. Adding, removing and finding the first takes the same time however many wait."""

    def __init__(self, requests: Iterable[Request] = ()) -> None:
        self._lanes: dict[_Lane, list[_Entry]] = {}
        self._entries: dict[str, _Entry] = {}
        self._numbers = count()
        for request in requests:
            self.add(request)

    def add(self, request: Request) -> None:
        """Adds a run, or replaces what it asks for."""
        self.remove(request.run_id)
        entry = self._entries[request.run_id] = (request.rank, request.seq, next(self._numbers), request)
        insort(self._lanes.setdefault((request.target, request.user), []), entry)

    def remove(self, run_id: str) -> Request | None:
        """Removes a run and returns what it asked for; None if it does not wait."""
        entry = self._entries.pop(run_id, None)
        if entry is None:
            return None
        request = entry[3]
        lane = self._lanes[request.target, request.user]
        del lane[bisect_left(lane, entry)]
        if not lane:
            del self._lanes[request.target, request.user]
        return request

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def targets(self) -> set[str]:
        """The targets that runs wait for."""
        return {target for target, _ in self._lanes}

    @property
    def users(self) -> set[str]:
        """The users whose runs wait."""
        return {user for _, user in self._lanes}

    def iterate(self, penalties: Mapping[str, float], closed: Closed | None = None) -> Iterator[Request]:
        """The runs in their order. `penalties` are seconds by which a user's runs come later.

        `closed` may grow meanwhile.
        """
        closed = closed or Closed()
        heads = [(lane[0][0] + penalties.get(key[1], 0.0), *lane[0][1:3], key, 0) for key, lane in self._lanes.items()]
        heapq.heapify(heads)
        while heads:
            _, _, _, key, index = heads[0]
            if key[0] in closed.targets or key[1] in closed.users:
                heapq.heappop(heads)
                continue
            lane = self._lanes[key]
            if index + 1 < len(lane):
                following = lane[index + 1]
                after = (following[0] + penalties.get(key[1], 0.0), *following[1:3], key, index + 1)
                heapq.heapreplace(heads, after)
            else:
                heapq.heappop(heads)
            yield lane[index][3]
