"""The arguments of an operation, checked against its signature before it is called."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

from trainmaster.shared.serialization import PlainDataError

UNCHANGED: Any = object()
"""The default of an argument that may also be null."""

# The largest integer of a database.
_LARGEST_NUMBER = 2**63 - 1


def changes_in(**values: Any) -> dict[str, Any]:
    """The values that were given."""
    return {name: value for name, value in values.items() if value is not UNCHANGED}


class Arguments:
    """The arguments that an operation takes, and their types."""

    def __init__(self, operation: Callable[..., Any]) -> None:
        found = inspect.signature(operation, eval_str=True).parameters
        self._hints = {name: parameter.annotation for name, parameter in found.items()}
        self._sure = {name: _find_sure_types(hint) for name, hint in self._hints.items()}
        self._needed = {name for name, parameter in found.items() if parameter.default is inspect.Parameter.empty}

    def check(self, given: Any) -> Mapping[str, Any]:
        """Return the arguments unchanged. Raises PlainDataError if the operation cannot be called with them."""
        if not isinstance(given, Mapping):
            raise PlainDataError(f"args must be an object, not {_kind(given)}")
        if not given.keys() <= self._hints.keys():
            raise PlainDataError(f"there is no argument {min(given.keys() - self._hints.keys())[:60]!r}")
        if not self._needed <= given.keys():
            raise PlainDataError(f"the argument '{min(self._needed - given.keys())}' is missing")
        for name, value in given.items():
            if type(value) not in self._sure[name]:
                check_value(self._hints[name], value, name)
        return given


def _find_sure_types(hint: Any) -> frozenset[type]:
    """The types of which every value fits, so that most requests need no closer look."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return frozenset[type]().union(*map(_find_sure_types, inner))
    if origin in (dict, Mapping) and inner[1] is Any:
        return frozenset({dict})
    if origin in (list, Sequence) and inner[0] is Any:
        return frozenset({list})
    return frozenset({hint}) if hint in (str, bool, float, type(None)) else frozenset()


def check_value(hint: Any, value: Any, where: str) -> None:
    """Raise PlainDataError if the value is not of this type; `where` names it in the message."""
    if hint is Any:
        return
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        _check_union(inner, value, where)
    elif origin is typing.Literal:
        if value not in inner:
            raise PlainDataError(f"{where} must be one of {', '.join(map(str, inner))}")
    elif origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise PlainDataError(f"{where} must be an object, not {_kind(value)}")
        for key, item in value.items():
            check_value(inner[1], item, f"{where}.{key[:60]}")
    elif origin in (list, Sequence):
        if not isinstance(value, list):
            raise PlainDataError(f"{where} must be a list, not {_kind(value)}")
        for number, item in enumerate(value):
            check_value(inner[0], item, f"{where}[{number}]")
    else:
        _check_scalar(hint, value, where)


def _check_union(choices: Sequence[Any], value: Any, where: str) -> None:
    problems = []
    for choice in choices:
        try:
            check_value(choice, value, where)
            return
        except PlainDataError as problem:
            problems.append(problem)
    raise problems[0]


def _check_scalar(hint: Any, value: Any, where: str) -> None:
    if hint is None or hint is type(None):
        fits = value is None
    elif hint in (int, float):
        fits = isinstance(value, int if hint is int else (int, float)) and not isinstance(value, bool)
    else:
        fits = isinstance(value, hint)
    if not fits:
        raise PlainDataError(f"{where} must be {_NAMES.get(hint, 'null')}, not {_kind(value)}")
    if isinstance(value, int) and abs(value) > _LARGEST_NUMBER:
        raise PlainDataError(f"{where} is too large")


_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def _kind(value: Any) -> str:
    """The name of the type in JSON."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else _NAMES.get(type(value), type(value).__name__)
