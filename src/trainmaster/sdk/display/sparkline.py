"""A series of numbers as one line of blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainmaster.shared.metrics import finite_number, thin

_BLOCKS = "▁▂▃▄▅▆▇█"
_NO_NUMBER = "·"


def sparkline(values: Sequence[Any], width: int = 40, scale: tuple[float, float] | None = None) -> str:
    """The values from left to right, low to high. A dot stands for a value that is not a finite number.

    `scale` is what the lowest and the highest block stand for, if not the smallest and the largest value.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7])
    '▁▂▃▄▅▆▇█'
    >>> sparkline([1, float("nan"), 1])
    '▄·▄'
    """
    numbers = [finite_number(value) for value in thin(values, width)]
    finite = [number for number in numbers if number is not None]
    if not finite:
        return _NO_NUMBER * len(numbers)
    low, high = scale or (min(finite), max(finite))
    return "".join(_block(number, low, high) for number in numbers)


def _block(number: float | None, low: float, high: float) -> str:
    if number is None:
        return _NO_NUMBER
    # Halved first: the difference of two large floats may overflow. Halves of the smallest floats are all zero.
    span = high / 2 - low / 2
    if span == 0:
        return _BLOCKS[3]
    share = (number / 2 - low / 2) / span
    return _BLOCKS[min(7, int(share * 8))]
