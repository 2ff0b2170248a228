"""Hosts whose clocks are not ours. Pure."""

from __future__ import annotations

import json
from typing import Any

# Less than this is what network time leaves.
_TRIFLE_SECONDS = 2.0
_MOMENTS = frozenset({"at", "started_at", "ended_at", "wrote_at"})


def difference(asked: float, answered: float, said: float) -> float:
    """How many seconds a host is behind that said what time it is, as it was asked; 0 for what may be the way there.

    >>> difference(100.0, 101.0, 100.7), difference(100.0, 101.0, 40.5), difference(100.0, 101.0, 400.5)
    (0.0, 60.0, -300.0)
    """
    if asked - _TRIFLE_SECONDS <= said <= answered + _TRIFLE_SECONDS:
        return 0.0
    return (asked + answered) / 2 - said


def on_our_clock(data: bytes, behind: float) -> bytes:
    """A file of a host, with the moments in it as our clock would have told them.

    >>> on_our_clock(b'{"ended_at": 40.5, "processes": [{"wrote_at": 40, "exit_code": 1}]}', 60.0)
    b'{"ended_at": 100.5, "processes": [{"wrote_at": 100.0, "exit_code": 1}]}'
    """
    return json.dumps(_moved(json.loads(data), behind)).encode() if behind else data


def _moved(value: Any, behind: float) -> Any:
    if isinstance(value, list):
        return [_moved(each, behind) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: each + behind if name in _MOMENTS and isinstance(each, int | float) else _moved(each, behind)
        for name, each in value.items()
    }
