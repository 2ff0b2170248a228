"""Fair shares: who has lately used more nodes than the others, and how far back their runs move in the queue. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainmaster.shared.records import NodeUse

HALF_LIFE_SECONDS = 7 * 86400.0
"""After this time, what a user has used counts half."""
MOST_SECONDS = 7 * 86400.0
"""A user's runs move back by less than this, so that everybody's turn comes."""
_FREE_NODE_SECONDS = 3600.0
"""So much use makes no difference: a few short runs are nobody's advantage."""
_TOLERANCE = 0.1


class RecentUse:
    """The node-seconds that each user has used, halved with every `HALF_LIFE_SECONDS`."""

    def __init__(self, past: Iterable[NodeUse] = ()) -> None:
        self._used: dict[str, tuple[float, float]] = {}
        """User to node-seconds, and the time at which they were as many."""
        for use in past:
            self.add(use)

    def add(self, use: NodeUse) -> None:
        """Counts the nodes of a run that has ended."""
        count, at = self._used.get(use.user, (0.0, use.until))
        latest = max(at, use.until)
        added = use.nodes * max(0.0, use.until - use.since)
        self._used[use.user] = count * _decay(latest - at) + added * _decay(latest - use.until), latest

    def count(self, users: Iterable[str], current: Iterable[NodeUse], now: float) -> dict[str, float]:
        """What each of these users has used, with the runs that hold nodes now."""
        found = dict.fromkeys(users, 0.0)
        for user in found:
            used, at = self._used.get(user, (0.0, now))
            found[user] = used * _decay(max(0.0, now - at))
        for use in current:
            if use.user in found:
                found[use.user] += use.nodes * max(0.0, now - use.since)
        return found


def find_penalties(used: Mapping[str, float]) -> dict[str, float]:
    """By how many seconds the runs of each user come later. Users within their share are left out.

    The share is equal: that of the users who want nodes now.

    >>> find_penalties({"ann": 100.0, "bob": 50.0})
    {}
    >>> {user: round(seconds / 3600) for user, seconds in find_penalties({"ann": 360000.0, "bob": 0.0}).items()}
    {'ann': 77}
    """
    if len(used) < 2:
        return {}
    share = sum(used.values()) / len(used) + _FREE_NODE_SECONDS
    excess = {user: (count + _FREE_NODE_SECONDS) / share - 1 - _TOLERANCE for user, count in used.items()}
    return {user: MOST_SECONDS * (1 - 2.0**-over) for user, over in excess.items() if over > 0}


def _decay(seconds: float) -> float:
    return float(0.5 ** (seconds / HALF_LIFE_SECONDS))
