"""Ports on which the processes of a run find each other: free at the moment, and not given to another run."""

from __future__ import annotations

import random
import socket

# Below the range that operating systems use for outgoing connections.
_FIRST, _LAST = 20000, 32000


class Ports:
    """The ports that the runs of this workspace use."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[int, ...]] = {}

    def take(self, run_id: str, count: int) -> tuple[int, ...]:
        """Chooses `count` free ports for a run; a run gets different ports for each attempt."""
        taken = {port for ports in self._taken.values() for port in ports} if count else set()
        found: list[int] = []
        tried = set(taken)
        while len(found) < count and len(tried) < _LAST - _FIRST:
            port = random.randrange(_FIRST, _LAST)
            if port not in tried and _is_free(port):
                found.append(port)
            tried.add(port)
        self._taken[run_id] = tuple(found)
        return self._taken[run_id]

    def note(self, run_id: str, ports: tuple[int, ...]) -> None:
        """Notes the ports of a run that an earlier dispatcher started."""
        self._taken[run_id] = ports

    def release(self, run_id: str) -> None:
        """Returns the ports of a run."""
        self._taken.pop(run_id, None)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
        try:
            attempt.bind(("", port))
        except OSError:
            return False
    return True
