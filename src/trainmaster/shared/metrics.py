"""Values of metrics, prepared to be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def thin(values: Sequence[Any], count: int) -> list[Any]:
    """At most `count` of the values, evenly chosen, the first and the last among them.

    >>> thin(range(100), 4)
    [0, 33, 66, 99]
    """
    if len(values) <= count:
        return list(values)
    if count == 1:
        return [values[-1]]
    return [values[round(n * (len(values) - 1) / (count - 1))] for n in range(count)]


def finite_number(value: Any) -> float | None:
    """What can be drawn of a value: a number that is one."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
