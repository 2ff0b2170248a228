"""Checks of single values of a sweep. Each raises an error that names the parameter."""

from __future__ import annotations

import math
import operator
from typing import Any

from trainmaster.job.errors import HyperDriveConfigException


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns `value` as an integer within its limits. numpy's integers are accepted; bool, text and float are not."""
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


def check_not_negative(name: str, value: Any) -> float:
    """Returns `value` as a number that is 0 or more."""
    try:
        if isinstance(value, bool | str):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise HyperDriveConfigException(f"{name} must be a number, not {value!r}") from None
    if not 0 <= number < math.inf:
        raise HyperDriveConfigException(f"{name} must be 0 or more, not {value!r}")
    return number


def check_text(name: str, value: Any) -> str:
    """Returns `value`, which must be one line of text that is not empty."""
    if not isinstance(value, str) or not value.strip() or any(ord(character) < 32 for character in value):
        raise HyperDriveConfigException(f"{name} must be one line of text that is not empty, not {value!r}")
    return value
