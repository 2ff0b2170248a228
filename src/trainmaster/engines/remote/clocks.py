"""Times of hosts whose clocks differ from ours. Pure."""

from __future__ import annotations

import json
from typing import Any

# Clocks that are set over the network differ by less than this.
_TOLERANCE_SECONDS = 2.0
_TIME_KEYS = frozenset({"at", "started_at", "ended_at", "wrote_at"})


def difference(sent: float, received: float, reported: float) -> float:
    """Seconds by which a host's clock is behind ours; 0 if the time that the request took can explain the difference.

    The request was sent and the answer received at these times of our clock; the host reported its own time.

    >>> difference(100.0, 101.0, 100.7), difference(100.0, 101.0, 40.5), difference(100.0, 101.0, 400.5)
    (0.0, 60.0, -300.0)
    """
    if sent - _TOLERANCE_SECONDS <= reported <= received + _TOLERANCE_SECONDS:
        return 0.0
    return (sent + received) / 2 - reported


def to_our_clock(data: bytes, behind: float) -> bytes:
    """Converts the times in a JSON file of a host to our clock.

    >>> to_our_clock(b'{"ended_at": 40.5, "processes": [{"wrote_at": 40, "exit_code": 1}]}', 60.0)
    b'{"ended_at": 100.5, "processes": [{"wrote_at": 100.0, "exit_code": 1}]}'
    """
    return json.dumps(_shift_times(json.loads(data), behind)).encode() if behind else data


def _shift_times(value: Any, behind: float) -> Any:
    if isinstance(value, list):
        return [_shift_times(each, behind) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: each + behind if name in _TIME_KEYS and isinstance(each, int | float) else _shift_times(each, behind)
        for name, each in value.items()
    }
