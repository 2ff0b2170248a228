"""What an API server has allowed so far: one that has just started refuses everything until it has read its roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmaster.engines.kubernetes.api_errors import ApiError, is_not_ready, lacks_right

PASSING_SECONDS = 60.0
"""How long a right that was there before may be missing."""


class Rights:
    """The rights that the server has granted, and those that it refuses now. Pure: the caller has the clock."""

    def __init__(self) -> None:
        self._granted: set[str] = set()
        self._refused: dict[str, tuple[float, float]] = {}
        """For each right, when it was refused for the first and for the last time in a row."""
        self._lost_at = float("-inf")

    def note_loss(self, now: float) -> None:
        """A connection to the server was lost: it may have been started again."""
        self._lost_at = now

    def note_grant(self, right: str) -> None:
        """The server has allowed something."""
        self._granted.add(right)
        self._refused.pop(right, None)

    def is_passing(self, right: str, error: ApiError, now: float) -> bool:
        """Whether the same request may soon be allowed, although the server refused it."""
        if not (lacks_right(error) or is_not_ready(error)):
            return False
        first, last = self._refused.get(right, (now, now))
        if now - last >= PASSING_SECONDS:
            first = now
        self._refused[right] = (first, now)
        if now - first >= PASSING_SECONDS:
            # Somebody has withdrawn it.
            self._granted.discard(right)
            return False
        return is_not_ready(error) or right in self._granted or first - self._lost_at < PASSING_SECONDS


def name_right(method: str, path: str, query: Mapping[str, Any]) -> str:
    """The right that a request needs; objects of one kind need the same.

    >>> name_right("DELETE", "/api/v1/namespaces/train/pods/tm-1", {})
    'DELETE pods'
    >>> name_right("GET", "/api/v1/namespaces/train/pods/tm-1/exec", {"command": "python3"})
    'GET pods/exec'
    >>> name_right("GET", "/apis/apps/v1/namespaces/train/deployments", {"watch": "1"})
    'WATCH deployments'
    """
    words = path.strip("/").split("/")
    rest = words[words.index("namespaces") + 2 :] if "namespaces" in words[:-2] else words
    return f"{'WATCH' if query.get('watch') else method} {'/'.join((rest[0], *rest[2:]))}"
