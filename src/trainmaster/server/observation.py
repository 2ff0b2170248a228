"""What the server counts about itself, for `/metrics`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper limits of the histogram of latencies, in seconds."""


class Observation:
    """Counters of requests and streams. Used from the event loop only."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """Method, path of the route and status."""
        self.latencies: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.in_progress = 0
        self.streams = 0
        """Clients of server-sent events."""

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        self.requests[method, path, status] += 1
        self.latencies[path][bisect_left(BUCKETS, seconds)] += 1
        self.seconds[path] += seconds
