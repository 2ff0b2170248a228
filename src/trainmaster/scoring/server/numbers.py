"""The counters of all replicas in shared memory, so that any replica can add them up for /metrics.

Each replica writes only into its own slot. A restarted replica continues to count in its slot, so that
sums never fall.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from typing import Dict, List, Optional, Tuple

SLOTS = 256

# Positions in a slot, all of them doubles. The first ones are states, cleared at each start; the others only grow.
READY, CONNECTIONS, IN_FLIGHT, HEARTBEAT, _USED = range(5)
_STATES = 4
SECONDS, RECEIVED, SENT, BATCHES, BATCHED = range(8, 13)
_BUCKETS = 16
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# One position per status from 100 to 599: for requests to /score, then for all others.
SCORED = 32 - 100
OTHERS = SCORED + 500
SIZE = 32 + 1000

_LABELS = (("/score", SCORED), ("other", OTHERS))


def make(path: str) -> None:
    """Create the file of the counters if it does not exist. Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Reserve the disk space now: with a full disk, writing to the mapped memory would kill the process.
        os.posix_fallocate(handle, 0, SLOTS * SIZE * 8)
    finally:
        os.close(handle)


class Numbers:
    """The counters; `mine` is the slot of this replica. Without a file, only this process uses them."""

    def __init__(self, path: Optional[str] = None, slot: int = 0) -> None:
        if path is None:
            memory = memoryview(bytearray(SIZE * 8))
        else:
            with open(path, "r+b") as file:
                memory = memoryview(mmap.mmap(file.fileno(), SLOTS * SIZE * 8))
        self._all = memory.cast("d")
        self.mine = self.slot(slot)
        self.clear(slot)

    def slot(self, number: int) -> "memoryview[float]":
        """The counters of one replica."""
        return self._all[number * SIZE : (number + 1) * SIZE]

    def clear(self, number: int) -> None:
        """Clear the states of the replica that had this slot; its counts stay."""
        slot = self.slot(number)
        for place in range(_STATES):
            slot[place] = 0.0
        slot[_USED] = 1.0

    def count_request(self, base: int, status: int, seconds: float, received: int, sent: int) -> None:
        """Count one request."""
        mine = self.mine
        mine[base + status] += 1.0
        mine[RECEIVED] += received
        mine[SENT] += sent
        if base == SCORED:
            mine[SECONDS] += seconds
            mine[_BUCKETS + bisect_left(BOUNDS, seconds)] += 1.0

    def fewest_connections(self) -> float:
        """The smallest number of connections of any ready replica; infinity if none is ready."""
        counts = [slot[CONNECTIONS] for slot in self._slots() if slot[READY]]
        return min(counts) if counts else float("inf")

    def text(self) -> str:
        """The sum of all replicas, in Prometheus' format."""
        total = [0.0] * SIZE
        ready = 0
        for slot in self._slots():
            ready += bool(slot[READY])
            for place, value in enumerate(slot):
                total[place] += value
        return _render(total, ready)

    def _slots(self) -> "List[memoryview[float]]":
        slots = []
        for number in range(len(self._all) // SIZE):
            slot = self.slot(number)
            # Slots are assigned in order.
            if not slot[_USED]:
                break
            slots.append(slot)
        return slots


def _render(total: List[float], ready: int) -> str:
    lines: List[str] = []
    _metric(lines, "requests_total", "counter", "Requests answered.", _statuses(total))
    _histogram(lines, total)
    gauges = (
        ("requests_in_flight", "Requests to /score being answered or waiting.", total[IN_FLIGHT]),
        ("connections", "Open connections.", total[CONNECTIONS]),
        ("replicas_ready", "Replicas that answer requests.", float(ready)),
    )
    counters = (
        ("request_bytes_total", "Bytes of request bodies.", total[RECEIVED]),
        ("response_bytes_total", "Bytes of answers.", total[SENT]),
        ("batches_total", "Batches given to run.", total[BATCHES]),
        ("batched_requests_total", "Requests in those batches.", total[BATCHED]),
    )
    for kind, metrics in (("gauge", gauges), ("counter", counters)):
        for name, meaning, value in metrics:
            _metric(lines, name, kind, meaning, {"": value})
    return "\n".join(lines) + "\n"


def _statuses(total: List[float]) -> Dict[str, float]:
    return {
        '{{path="{}",status="{}"}}'.format(path, status): total[base + status]
        for path, base in _LABELS
        for status in range(100, 600)
        if total[base + status]
    }


def _histogram(lines: List[str], total: List[float]) -> None:
    so_far = 0.0
    buckets: Dict[str, float] = {}
    for place, bound in enumerate((*BOUNDS, float("inf"))):
        so_far += total[_BUCKETS + place]
        buckets['_bucket{{le="{}"}}'.format("+Inf" if bound == float("inf") else repr(bound))] = so_far
    values: Tuple[Tuple[str, float], ...] = (("_sum", total[SECONDS]), ("_count", so_far))
    meaning = "From the headers of a request to /score to its answer."
    _metric(lines, "request_seconds", "histogram", meaning, {**buckets, **dict(values)})


def _metric(lines: List[str], name: str, kind: str, meaning: str, values: Dict[str, float]) -> None:
    name = "trainmaster_scoring_" + name
    lines.append("# HELP {} {}".format(name, meaning))
    lines.append("# TYPE {} {}".format(name, kind))
    for suffix, value in values.items():
        lines.append("{}{} {}".format(name, suffix, repr(value) if value != int(value) else int(value)))
