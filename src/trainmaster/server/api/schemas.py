"""JSON schemas of Python types: scalars, lists, mappings, unions, dataclasses, typed dictionaries and enumerations.

A dataclass has two schemas. In an answer all its fields are there; in a request those with a default may be missing.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any

from trainmaster.shared.records import Finite

Schema = dict[str, Any]

_SCALARS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    object: {},
    Any: {},
    Finite: {"type": "number"},
}
_RANGE = {"minimum": -(2**63) + 1, "maximum": 2**63 - 1}
"""Of a whole number in a request."""
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
"""A number in an answer. JSON has no words for those that are not finite."""


class Direction(StrEnum):
    """Whether a schema describes a request or an answer."""

    REQUEST = "request"
    ANSWER = "answer"


class Schemas:
    """Collects the named schemas that others refer to."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}
        self._kinds: dict[str, Any] = {}

    def describe(self, kind: Any, direction: Direction) -> Schema:
        """The schema of a type."""
        if kind is float:
            return {"type": "number"} if direction is Direction.REQUEST else NUMBER
        if isinstance(kind, typing.Hashable) and kind in _SCALARS:
            limits = _RANGE if kind is int and direction is Direction.REQUEST else {}
            return {**_SCALARS[kind], **limits}
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.describe(each, direction) for each in inner]}
        if origin is typing.Literal:
            return {"enum": list(inner)}
        if origin in (list, Sequence, tuple) or kind in (list, tuple):
            return {"type": "array", "items": self.describe(inner[0], direction) if inner else {}}
        if origin in (dict, Mapping) or kind is dict:
            return {"type": "object", "additionalProperties": self.describe(inner[1], direction) if inner else {}}
        return self._refer(kind, direction)

    def _refer(self, kind: Any, direction: Direction) -> Schema:
        """A reference to the named schema of a class, which is added."""
        name = kind.__name__
        if direction is Direction.REQUEST and dataclasses.is_dataclass(kind):
            name = f"{name}Input"
        if self._kinds.setdefault(name, kind) is not kind:
            raise ValueError(f"two types are called {name}: {kind.__module__} and {self._kinds[name].__module__}")
        if name not in self.named:
            # Before its fields, which may refer to it.
            self.named[name] = {}
            self.named[name] = self._describe_class(kind, direction)
        return {"$ref": f"#/components/schemas/{name}"}

    def _describe_class(self, kind: Any, direction: Direction) -> Schema:
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [each.value for each in kind], **_title(kind)}
        if typing.is_typeddict(kind):
            hints = typing.get_type_hints(kind)
            return self._object(hints, sorted(kind.__required_keys__), direction, kind)
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            fields = dataclasses.fields(kind)
            needed = [each.name for each in fields if direction is Direction.ANSWER or not _has_default(each)]
            return self._object({each.name: hints[each.name] for each in fields}, needed, direction, kind)
        raise TypeError(f"{kind!r} has no schema")

    def _object(self, hints: Mapping[str, Any], needed: list[str], direction: Direction, kind: Any) -> Schema:
        return {
            "type": "object",
            "properties": {name: self.describe(hint, direction) for name, hint in hints.items()},
            "required": needed,
            "additionalProperties": False,
            **_title(kind),
        }


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _title(kind: Any) -> Schema:
    text = inspect.getdoc(kind)
    return {"description": text.split("\n\n")[0].replace("\n", " ")} if text else {}
