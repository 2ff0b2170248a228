"""The arguments of a route, by the signature of its handler or operation."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

from trainmaster.dispatcher.api.operations import list_operations
from trainmaster.dispatcher.arguments import UNCHANGED
from trainmaster.server.api.table import Operation, Route
from trainmaster.server.errors import refuse

REQUIRED: Any = MISSING
"""The default of an argument that has none."""


class Place(StrEnum):
    """Where an argument is in a request."""

    PATH = "path"
    QUERY = "query"
    BODY = "body"


@dataclass(frozen=True)
class Parameter:
    """One argument of a route."""

    name: str
    type: Any
    place: Place
    default: Any = REQUIRED

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Signature:
    """The arguments of a route, and the type of its answer."""

    parameters: tuple[Parameter, ...]
    answer: Any
    ignores_query: bool = False

    def select(self, place: Place) -> tuple[Parameter, ...]:
        """The arguments at this place."""
        return self._by_place[place]

    @cached_property
    def _by_place(self) -> Mapping[Place, tuple[Parameter, ...]]:
        return {place: tuple(each for each in self.parameters if each.place is place) for place in Place}


def read_signature(route: Route) -> Signature:
    """What a route takes and answers."""
    given, answer = _read_target(route)
    parameters = [
        Parameter(name, route.types.get(name, kind), _place(route, name), default)
        for name, (kind, default) in given.items()
        if name not in route.fixed
    ]
    missing = set(route.parameters) - {each.name for each in parameters} - {"workspace"}
    if missing:
        raise TypeError(f"{route.method} {route.path}: {sorted(missing)} are not arguments")
    return Signature(tuple(parameters), answer if route.answer is None else route.answer, route.ignores_query)


def _read_target(route: Route) -> tuple[dict[str, tuple[Any, Any]], Any]:
    """Name to type and default, and the type of the answer."""
    if not isinstance(route.target, Operation):
        return _read_function(route.target)
    function = list_operations().get(route.operation)
    if function is None:
        raise LookupError(f"{route.method} {route.path}: there is no operation {route.operation}")
    given, answer = _read_function(function)
    if route.target.by_name:
        given = _read_query(route.types[route.target.by_name])
    return given, answer


@cache
def _read_function(function: Callable[..., Any]) -> tuple[dict[str, tuple[Any, Any]], Any]:
    signature = inspect.signature(function, eval_str=True)
    # The first is self, or the call.
    found = list(signature.parameters.values())[1:]
    given = {
        each.name: (each.annotation, REQUIRED if each.default is inspect.Parameter.empty else each.default)
        for each in found
    }
    return given, signature.return_annotation


def _read_query(kind: Any) -> dict[str, tuple[Any, Any]]:
    """The fields of a dataclass as arguments."""
    hints = typing.get_type_hints(kind)
    found = {}
    for each in fields(kind):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        found[each.name] = hints[each.name], default
    return found


def _place(route: Route, name: str) -> Place:
    if name in route.parameters:
        return Place.PATH
    if route.method in ("GET", "HEAD", "DELETE") or route.streams_body:
        return Place.QUERY
    return Place.BODY


def is_optional(kind: Any) -> bool:
    """Whether None is a value of this type."""
    return type(None) in typing.get_args(kind)


@cache
def list_choices(kind: Any) -> tuple[Any, ...]:
    """The types of a union without None; the type itself if it is none.

    >>> list_choices(int | None), list_choices(str)
    ((<class 'int'>,), (<class 'str'>,))
    """
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return tuple(each for each in typing.get_args(kind) if each is not type(None))
    return (kind,)


@cache
def is_list(kind: Any) -> bool:
    """Whether a query may repeat an argument of this type."""
    return typing.get_origin(list_choices(kind)[0]) in (list, tuple, Sequence)


@cache
def is_mapping(kind: Any) -> bool:
    """Whether a query has an argument of this type as NAME=VALUE, perhaps several times."""
    return typing.get_origin(list_choices(kind)[0]) in (dict, Mapping)


def read_item(kind: Any, text: str, name: str) -> Any:
    """One value of an argument that is a list."""
    return read_text(typing.get_args(list_choices(kind)[0])[0], text, name)


def read_text(kind: Any, text: str, name: str) -> Any:
    """The value of a path or query argument. Raises HttpError if the text is not of this type."""
    for choice in list_choices(kind):
        if choice in _READERS:
            value = _READERS[choice](text)
            if value is not None:
                return value
        elif typing.get_origin(choice) is typing.Literal:
            if text in typing.get_args(choice):
                return text
        elif choice is str or choice is Any:
            return text
        elif typing.get_origin(choice) in (dict, Mapping):
            return _read_pairs(text, name)
    raise refuse(400, f"the argument '{name}' cannot be {text[:60]!r}", cause=f"It must be {_describe(kind)}.")


def _read_int(text: str) -> int | None:
    try:
        number = int(text) if text.isascii() and len(text) < 20 and "_" not in text else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 2**63 else None


def _read_float(text: str) -> float | None:
    try:
        return float(text) if text.isascii() and len(text) < 40 and "_" not in text else None
    except ValueError:
        return None


def _read_bool(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text)


_READERS: Mapping[Any, Callable[[str], Any]] = {int: _read_int, float: _read_float, bool: _read_bool}


def _read_pairs(text: str, name: str) -> dict[str, str | None]:
    """`a=1` as an object; without `=` any value is meant."""
    key, found, value = text.partition("=")
    if not key:
        raise refuse(400, f"the argument '{name}' must be NAME or NAME=VALUE")
    return {key: value if found else None}


def _describe(kind: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    choices = []
    for choice in list_choices(kind):
        if typing.get_origin(choice) is typing.Literal:
            choices.append(f"one of {', '.join(map(str, typing.get_args(choice)))}")
        else:
            choices.append(names.get(choice, "a text"))
    return " or ".join(choices)


def was_given(value: Any) -> bool:
    """Whether an argument has a value: not the marks for a missing or an unchanged one."""
    return value is not REQUIRED and value is not UNCHANGED
