"""Checks of single values. Each error names the parameter and the fix."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.job.errors import TrainingException, UserErrorException
from trainmaster.shared.job_spec import MOST_PRIORITY


def whole_number(name: str, value: Any) -> int:
    """`value` as an int, from any integer type (numpy's too), but not from a bool, string or float."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise UserErrorException(
            f"{name} must be a whole number, not {value!r}", hint=f"Write {name}=1, without quotes."
        ) from None


def count(name: str, value: Any, least: int = 1) -> int:
    """`value` as a count of at least `least`."""
    number = whole_number(name, value)
    if number < least:
        raise TrainingException(f"{name} must be at least {least}, not {number}")
    return number


def server_count(name: str, value: Any) -> int:
    """`value` as a number of parameter servers, which is 0 for workers that exchange gradients themselves."""
    return count(name, value, least=0)


def seconds(name: str, value: Any) -> int | None:
    """`value` as a time limit, or None for no limit."""
    if value is None:
        return None
    number = whole_number(name, value)
    if number < 1:
        raise UserErrorException(
            f"{name} must be a positive number of seconds, not {number}", hint="Leave it out for no limit."
        )
    return number


def retries(name: str, value: Any) -> int:
    """`value` as the number of retries; 0 for none."""
    number = whole_number(name, value)
    if number < 0:
        raise UserErrorException(f"{name} must be 0 or more, not {number}", hint="Use 0 for no retries.")
    return number


def priority(name: str, value: Any) -> int:
    """`value` as a place in the queue; None is 0, as for everybody who gives none."""
    number = 0 if value is None else whole_number(name, value)
    if abs(number) > MOST_PRIORITY:
        raise UserErrorException(
            f"{name} must be from -{MOST_PRIORITY} to {MOST_PRIORITY}, not {number}",
            hint="Larger is earlier; 0 is the default.",
        )
    return number


def silence(name: str, value: Any) -> float | None:
    """`value` as the seconds without output after which a run counts as hanging, or None for no limit."""
    if value is None:
        return None
    try:
        if isinstance(value, bool | str):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise UserErrorException(f"{name} must be a number of seconds, not {value!r}") from None
    if not 0 < number < math.inf:
        raise UserErrorException(
            f"{name} must be a positive number of seconds, not {value!r}", hint="Leave it out for no limit."
        )
    return number


def flag(name: str, value: Any) -> bool:
    """`value`, which must be True or False."""
    if not isinstance(value, bool):
        raise UserErrorException(f"{name} must be True or False, not {value!r}")
    return value


def text(name: str, value: Any) -> str:
    """`value`, which must be a string of one line."""
    if not isinstance(value, str):
        raise UserErrorException(f"{name} must be a string, not {type(value).__name__}")
    if not value.strip() or any(ord(letter) < 32 for letter in value):
        raise UserErrorException(f"{name} must be a string of one line that is not empty, not {value!r}")
    return value


def optional_text(name: str, value: Any) -> str | None:
    """`value`, which must be None or a string of one line."""
    return None if value is None else text(name, value)


def path(name: str, value: Any) -> str:
    """`value` as the string of a path."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise UserErrorException(
            f"{name} must be the path of a folder, not {value!r}", hint="Use '.' for the current folder."
        )
    return text(name, value)


def relative_path(name: str, value: Any) -> str:
    """`value` as a path with forward slashes that stays inside the source folder."""
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str):
        raise UserErrorException(f"{name} must be a path inside source_directory, not {type(value).__name__}")
    text(name, given)
    normal = os.path.normpath(given)
    if given.startswith("/") or normal.split("/", 1)[0] == "..":
        raise UserErrorException(
            f"{name} must be inside source_directory, not {given!r}",
            hint="Give the path relative to source_directory.",
        )
    return normal


def items(name: str, value: Any) -> list[Any]:
    """`value` as a list; strings and mappings are refused."""
    if value is None:
        return []
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise UserErrorException(f"{name} must be a list, not {type(value).__name__}", hint=f"Write {name}=[...].")
    return list(value)


def packages(name: str, value: Any) -> list[str]:
    """`value` as a list of packages. A single string, the usual mistake, is refused."""
    if isinstance(value, str):
        raise UserErrorException(f"{name} must be a list of strings, not a string", hint=f"Write {name}=[{value!r}].")
    return [text(f"each of {name}", item) for item in items(name, value)]


def mapping(name: str, value: Any) -> dict[Any, Any]:
    """`value` as a dict."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserErrorException(
            f"{name} must be a dict, not {type(value).__name__}", hint=f"Write {name}={{name: value}}."
        )
    return dict(value)
