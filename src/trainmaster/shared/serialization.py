"""Frozen dataclasses to plain JSON data and back, strictly: an unknown or missing key is an error that names it."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union

T = TypeVar("T")


class PlainDataError(ValueError):
    """Data that does not describe the dataclass it was read as."""


_SCALARS = frozenset({str, int, float, bool, type(None)})


def to_plain(value: Any) -> Any:
    """`value` as dicts, lists and scalars that `json` can write."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind in (list, tuple):
        return [item if type(item) in _SCALARS else to_plain(item) for item in value]
    if dataclasses.is_dataclass(kind):
        return {name: to_plain(getattr(value, name)) for name in _names(kind)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], data: Any, where: str = "") -> T:
    """The dataclass `kind` described by `data`; `where` names the place in messages."""
    where = where or kind.__name__
    if not isinstance(data, Mapping):
        raise PlainDataError(f"{where} must be an object, not {type(data).__name__}")
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
    unknown = set(data) - set(hints)
    if unknown:
        raise PlainDataError(f"{where} has unknown keys: {', '.join(sorted(map(str, unknown)))}")
    values = {name: _read(hints[name], item, f"{where}.{name}") for name, item in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise PlainDataError(f"{where}: {error}") from None


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    resolved = typing.get_type_hints(kind)
    return {field.name: resolved[field.name] for field in dataclasses.fields(kind)}


def _read(hint: Any, value: Any, where: str) -> Any:
    if hint is Any or type(value) is hint:
        return value
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return _read_union(hint, value, where)
    if origin is tuple:
        inner = typing.get_args(hint)[0]
        if isinstance(value, list) and inner in _SCALARS and all(type(item) is inner for item in value):
            return tuple(value)
        return tuple(_read(typing.get_args(hint)[0], item, f"{where}[{n}]") for n, item in _items(value, where))
    if origin in (dict, Mapping):
        inner = typing.get_args(hint)[1]
        if not isinstance(value, Mapping):
            raise PlainDataError(f"{where} must be an object, not {type(value).__name__}")
        if inner is Any:
            return {str(key): item for key, item in value.items()}
        return {str(key): _read(inner, item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return from_plain(typing.cast(type[Any], hint), value, where)
    return _read_scalar(hint, value, where)


def _read_union(hint: Any, value: Any, where: str) -> Any:
    choices = typing.get_args(hint)
    if value is None and type(None) in choices:
        return None
    return _read(next(choice for choice in choices if choice is not type(None)), value, where)


def _read_scalar(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, typing.NewType):
        return _read(hint.__supertype__, value, where)
    if typing.get_origin(hint) is typing.Literal:
        if value not in typing.get_args(hint):
            raise PlainDataError(f"{where} must be one of {', '.join(map(str, typing.get_args(hint)))}, not {value!r}")
        return value
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _read_enum(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise PlainDataError(f"{where} must be {hint.__name__}, not {type(value).__name__}")
    return value


def _read_enum(hint: type[Enum], value: Any, where: str) -> Enum:
    try:
        return hint(value)
    except ValueError:
        raise PlainDataError(
            f"{where} must be one of {', '.join(str(each.value) for each in hint)}, not {value!r}"
        ) from None


def _items(value: Any, where: str) -> list[tuple[int, Any]]:
    if not isinstance(value, (list, tuple)):
        raise PlainDataError(f"{where} must be a list, not {type(value).__name__}")
    return list(enumerate(value))
