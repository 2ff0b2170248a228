"""What a filter means: a tree of conditions on the fields of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

FieldKind = Literal["column", "argument", "metric", "tag", "property"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Field:
    """What a condition, an order or a column of a result is about."""

    kind: FieldKind
    name: str
    part: str = ""
    """`metric` only: last, min, max or count."""

    def __str__(self) -> str:
        if self.kind == "column":
            return self.name
        return f"{self.kind}.{self.name}.{self.part}" if self.part else f"{self.kind}.{self.name}"


@dataclass(frozen=True)
class Value:
    """What a field is compared with."""

    text: str
    """As it was written."""
    number: float | None = None
    """None for a text; for a time, seconds since the epoch."""


@dataclass(frozen=True)
class Compare:
    """The field has a value, and it compares like this."""

    field: Field
    operator: Operator
    value: Value


@dataclass(frozen=True)
class Match:
    """The text of the field matches a pattern: `*` is any text, `?` any character, a backslash takes the next as is."""

    field: Field
    pattern: str
    ignores_case: bool = False


@dataclass(frozen=True)
class OneOf:
    """The field has one of these values."""

    field: Field
    values: tuple[Value, ...]


@dataclass(frozen=True)
class IsSet:
    """The field has a value."""

    field: Field


@dataclass(frozen=True)
class Not:
    """The condition does not hold."""

    condition: Condition


@dataclass(frozen=True)
class And:
    """All of the conditions hold; without any, every run matches."""

    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Or:
    """One of the conditions holds."""

    conditions: tuple[Condition, ...]


Condition = Compare | Match | OneOf | IsSet | Not | And | Or


@dataclass(frozen=True)
class Order:
    """By which field runs are sorted. Runs without a value come last; runs with equal values by their age."""

    field: Field
    descending: bool = False


def fields_of(condition: Condition) -> Iterator[Field]:
    """The fields that a condition is about."""
    if isinstance(condition, And | Or):
        for each in condition.conditions:
            yield from fields_of(each)
    elif isinstance(condition, Not):
        yield from fields_of(condition.condition)
    else:
        yield condition.field
