"""Ports for the processes of a run to meet at: free now, and given to no other run."""

from __future__ import annotations

import random
import socket

# Below the range from which systems take ports for outgoing connections, so that none is taken in passing.
_FIRST, _LAST = 20000, 32000


class Ports:
    """Knows which ports the runs of this workspace have."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[int, ...]] = {}

    def take(self, run_id: str, count: int) -> tuple[int, ...]:
        """As many ports as asked for; the same run gets others each time, since it never listens twice."""
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
        """The ports of a run that an earlier dispatcher started."""
        self._taken[run_id] = ports

    def release(self, run_id: str) -> None:
        """Gives the ports of a run back."""
        self._taken.pop(run_id, None)


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
        try:
            attempt.bind(("", port))
        except OSError:
            return False
    return True
