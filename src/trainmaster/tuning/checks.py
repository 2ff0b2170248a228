"""Checks of single values of a sweep: each refuses with one sentence that names the parameter."""

from __future__ import annotations

import math
import operator
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """`value` as a whole number (numpy's too) within its limits; no bool, text or float."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise HyperDriveConfigException(f"{name} must be a whole number, not {value!r}") from None
    if number < least or (most is not None and number > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise HyperDriveConfigException(f"{name} must be {limits}, not {number}")
    return number


def not_negative(name: str, value: Any) -> float:
    """`value` as a number that is 0 or more."""
    try:
        if isinstance(value, bool | str):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise HyperDriveConfigException(f"{name} must be a number, not {value!r}") from None
    if not 0 <= number < math.inf:
        raise HyperDriveConfigException(f"{name} must be 0 or more, not {value!r}")
    return number


def text(name: str, value: Any) -> str:
    """`value`, which must be text of one line that is not empty."""
    if not isinstance(value, str) or not value.strip() or any(ord(letter) < 32 for letter in value):
        raise HyperDriveConfigException(f"{name} must be text of one line that is not empty, not {value!r}")
    return value
