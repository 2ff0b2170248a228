"""Whether a run may start before the first one that waits, without delaying it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MARGIN_SECONDS = 60.0
"""How much longer than its time limit a run may hold its nodes: starting and ending take time."""


@dataclass(frozen=True)
class Holding:
    """Nodes of a run, and when they are returned at the latest."""

    nodes: int
    until: float = math.inf


@dataclass(frozen=True)
class Reservation:
    """The nodes that are kept for the first run that waits."""

    at: float
    """When it has its nodes at the latest; infinite if that is not known."""
    spare: int
    """So many of the free nodes it does not need, whichever runs end first."""

    def admits(self, nodes: int, until: float) -> bool:
        """Whether a run that starts now, and ends by `until`, leaves the first run its nodes."""
        return nodes <= self.spare or self.is_after(until)

    def is_after(self, until: float) -> bool:
        """Whether a run that ends by `until` has ended when the first one gets its nodes."""
        return until <= self.at < math.inf


def latest_end(start: float, seconds: float | None) -> float:
    """When a run that starts then has returned its nodes at the latest."""
    return math.inf if seconds is None else start + seconds + MARGIN_SECONDS


def reserve(wanted: int, free: int, holdings: Iterable[Holding], now: float) -> Reservation:
    """The reservation of a run that wants more nodes than are free."""
    held = list(holdings)
    return Reservation(_find_time(wanted - free, held, now), _count_spare(wanted - free, free, held))


def _find_time(missing: int, held: Iterable[Holding], now: float) -> float:
    # A run that is late may end at any moment.
    for each in sorted(held, key=lambda each: each.until):
        missing -= each.nodes
        if missing <= 0:
            return max(each.until, now)
    return math.inf


def _count_spare(missing: int, free: int, held: Iterable[Holding]) -> int:
    """The nodes that are left over, in the worst order of ends, when the first run starts."""
    # Bit n is set if some of the runs together hold n nodes.
    sums = 1
    for each in held:
        sums |= sums << each.nodes
    enough = sums >> missing
    if not enough:
        # It never fits: the target has become smaller.
        return free
    return min(free, (enough & -enough).bit_length() - 1)
