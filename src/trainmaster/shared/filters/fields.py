"""The fields of a run that filters, orders and columns can name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trainmaster.shared.arguments import plain_name
from trainmaster.shared.filters.conditions import Field, FieldKind
from trainmaster.shared.spelling import closest

ColumnType = Literal["text", "number", "time", "status"]

COLUMNS: dict[str, ColumnType] = {
    "id": "text",
    "name": "text",
    "description": "text",
    "experiment": "text",
    "number": "number",
    "status": "status",
    "type": "text",
    "target": "text",
    "user": "text",
    "parent": "text",
    "snapshot": "text",
    "error": "text",
    "created": "time",
    "started": "time",
    "ended": "time",
    "archived": "time",
    "duration": "number",
}
"""The columns of a run and what they are compared with."""

_SYNONYMS = {
    "run_id": "id",
    "display_name": "name",
    "state": "status",
    "submitted_by": "user",
    "parent_id": "parent",
    "snapshot_id": "snapshot",
    "created_at": "created",
    "started_at": "started",
    "ended_at": "ended",
    "archived_at": "archived",
}

_KINDS: dict[str, FieldKind] = {
    "arg": "argument",
    "args": "argument",
    "argument": "argument",
    "arguments": "argument",
    "param": "argument",
    "params": "argument",
    "metric": "metric",
    "metrics": "metric",
    "tag": "tag",
    "tags": "tag",
    "property": "property",
    "properties": "property",
}

METRIC_PARTS = ("last", "min", "max", "count")


class UnknownFieldError(Exception):
    """A name that is probably a misspelled field. `hint` says what to write."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"there is no field '{name}'")
        self.hint = hint


def make_field(parts: Sequence[tuple[str, bool]]) -> Field:
    """The field of a name with dots in it: its parts, and whether each was quoted.

    A name that is not a column is an argument of the run's script.

    >>> make_field([("metric", False), ("val", False), ("loss", False), ("min", False)])
    Field(kind='metric', name='val.loss', part='min')
    >>> make_field([("lr", False)])
    Field(kind='argument', name='lr', part='')
    >>> make_field([("metric:loss", False)])
    Field(kind='metric', name='loss', part='last')
    """
    parts = _split_kind(parts)
    first, is_quoted = parts[0]
    name = ".".join(text for text, _ in parts)
    if is_quoted:
        return Field("argument", plain_name(name))
    if len(parts) == 1:
        return _make_short_field(name)
    kind = _KINDS.get(first.lower())
    if kind is None:
        _refuse_misspelling(name, first, list(_KINDS))
        return Field("argument", plain_name(name))
    rest = list(parts[1:])
    part = ""
    if kind == "metric":
        part = "last"
        last, last_is_quoted = rest[-1]
        if len(rest) > 1 and not last_is_quoted and last.lower() in METRIC_PARTS:
            part = last.lower()
            rest.pop()
    own = ".".join(text for text, _ in rest)
    return Field(kind, plain_name(own) if kind == "argument" else own, part)


def _split_kind(parts: Sequence[tuple[str, bool]]) -> Sequence[tuple[str, bool]]:
    """`metric:loss` is another way to write `metric.loss`."""
    first, is_quoted = parts[0]
    kind, colon, rest = first.partition(":")
    if is_quoted or not colon or kind.lower() not in _KINDS or not (rest or len(parts) > 1):
        return parts
    return [(kind, False), *([(rest, False)] if rest else []), *parts[1:]]


def _make_short_field(name: str) -> Field:
    known = _SYNONYMS.get(name.lower(), name.lower())
    if known in COLUMNS:
        return Field("column", known)
    if known in _KINDS:
        raise UnknownFieldError(name, f"Write {_KINDS[known]}.NAME.")
    _refuse_misspelling(name, name, list(COLUMNS))
    return Field("argument", plain_name(name))


def _refuse_misspelling(name: str, word: str, known: list[str]) -> None:
    close = closest(word.lower(), known, 0.8)
    if close:
        raise UnknownFieldError(name, f"Did you mean '{close}'? An argument of this name is written as arg.{name}.")
