"""Turns the conditions of a filter into SQL. Values are bound parameters; names of columns come from tables here.

A condition on a field that a run does not have is false, so its opposite is true: no expression here is ever NULL.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    String,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    true,
)

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.labels import PROPERTY, TAG
from trainmaster.dispatcher.store.schema import arguments, experiments, metrics, run_labels, runs
from trainmaster.dispatcher.store.values import clean, label_index, name_index
from trainmaster.shared.filters import And, Compare, Condition, Field, IsSet, Match, Not, OneOf, Or, Value
from trainmaster.shared.records import ACTIVE, TERMINAL

Predicate = ColumnElement[bool]
Restriction = Callable[[ColumnElement[Any]], Predicate]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TEXT_COLUMNS: dict[str, ColumnElement[Any]] = {
    "id": runs.c.id,
    "name": runs.c.display_name,
    "description": runs.c.description,
    "type": runs.c.type,
    "target": runs.c.target,
    "user": runs.c.submitted_by,
    "parent": runs.c.parent_id,
    "snapshot": runs.c.snapshot_id,
    "error": runs.c.error,
}
METRIC_PARTS: dict[str, ColumnElement[Any]] = {
    "last": metrics.c.last_number,
    "min": metrics.c.minimum,
    "max": metrics.c.maximum,
    "count": metrics.c.count,
}
"""The columns of what can be said about a metric."""
_INDEXED_TEXTS = frozenset({"id", "target", "user", "parent"})
_NUMBER = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?$"
_GLOB_MARK = re.compile(r"\\(.)|([*?])|(.)", re.DOTALL)


@dataclass(frozen=True)
class Compiler:
    """Compiles conditions for one database at one time."""

    connection: Connection
    now: float
    hides_indexes: bool = False
    """Whether SQLite is kept from indexes on columns of runs, because runs are read in another order."""

    @property
    def is_postgresql(self) -> bool:
        """Whether the database is PostgreSQL; else it is SQLite."""
        return self.connection.dialect.name == "postgresql"

    # Conditions

    def compile(self, condition: Condition) -> Predicate:
        """A predicate on the table `runs`."""
        match condition:
            case And():
                return and_(true(), *map(self.compile, condition.conditions))
            case Or():
                return or_(false(), *map(self.compile, condition.conditions))
            case Not():
                return not_(self.compile(condition.condition))
            case _ if condition.field.kind == "column":
                return self._compile_column(condition)
            case _:
                return self._has(self._select(condition))

    def _has(self, rows: Select[Any]) -> Predicate:
        if self.is_postgresql:
            # PostgreSQL joins what EXISTS selects with all runs. OFFSET has it look at the runs of the page only.
            rows = rows.offset(literal_column("0"))
        return exists(rows.where(rows.selected_columns[0] == runs.c.seq).correlate(runs))

    def find_driver(self, condition: Condition) -> Select[Any] | None:
        """The rows of an index that hold all runs for which `condition` is true; None if there is no such index."""
        match condition:
            case Match() | Not() | And() | Or():
                return None
            case _ if condition.field.kind == "column":
                return self._drive_column(condition)
            case Compare(operator="!=") | IsSet():
                return None
            case _ if condition.field.kind in ("tag", "property") and not isinstance(condition, OneOf):
                return self._select(condition) if condition.operator == "=" else None
            case _:
                return None if condition.field.part == "count" else self._select(condition)

    # Rows of arguments, metrics and labels

    def _select(self, condition: Compare | Match | OneOf | IsSet) -> Select[Any]:
        """The runs that have the field, and for which the condition is true, by their number."""
        field = condition.field
        match field.kind:
            case "argument":
                rows = select(arguments.c.run_seq).where(arguments.c.name == shorten(field.name))
            case "metric":
                rows = select(metrics.c.run_seq).where(metrics.c.name == name_index(clean(field.name)))
            case _:
                kind = TAG if field.kind == "tag" else PROPERTY
                mine = (run_labels.c.kind == kind) & (run_labels.c.name == name_index(clean(field.name)))
                rows = select(run_labels.c.run_seq).where(mine)
        return rows.where(self.test_row(condition))

    def test_row(self, condition: Compare | Match | OneOf | IsSet) -> Predicate:
        """The condition on the row that has its field: a run has one row at most for each argument, metric or label."""
        match condition.field.kind:
            case "argument":
                return self._test_argument(condition)
            case "metric":
                return _test(METRIC_PARTS[condition.field.part], condition)
            case _:
                return self._test_label(condition)

    def _test_argument(self, condition: Compare | Match | OneOf | IsSet) -> Predicate:
        match condition:
            case IsSet():
                return true()
            case Match():
                return self._match(arguments.c.text, condition)
            case OneOf():
                return or_(*(self._test_argument(Compare(condition.field, "=", value)) for value in condition.values))
            case Compare(value=Value(number=None)):
                texts = [shorten(text) for text in _spellings(condition.value)]
                return _compare_texts(arguments.c.text, condition.operator, texts)
            case Compare():
                number = _COMPARE[condition.operator](arguments.c.number, condition.value.number)
                return and_(arguments.c.number.is_not(None), number)

    def _test_label(self, condition: Compare | Match | OneOf | IsSet) -> Predicate:
        value = run_labels.c.value
        match condition:
            case IsSet():
                return true()
            case Match():
                return self._match(value, condition)
            case OneOf():
                return value.in_([text for each in condition.values for text in _label_texts(each)])
            case Compare(operator="=" | "!="):
                return _compare_texts(value, condition.operator, _label_texts(condition.value))
            case Compare(value=Value(number=None)):
                texts = [label_index(text) for text in _spellings(condition.value)]
                return _compare_texts(self.exact(value), condition.operator, texts)
            case Compare():
                number = self._number_in(value)
                return func.coalesce(_COMPARE[condition.operator](number, condition.value.number), false())

    def _number_in(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """The number that a text is, or NULL."""
        if self.is_postgresql:
            return _read_number(text.regexp_match(_NUMBER), text)
        # SQLite's functions for JSON refuse any other text.
        json = func.iif(func.json_valid(text), text, None)
        return _read_number(func.json_type(json).in_(("integer", "real")), text)

    def exact(self, value: ColumnElement[Any]) -> ColumnElement[Any]:
        """A text to be compared byte by byte on every database; a number as it is."""
        return value.collate("C") if self.is_postgresql and isinstance(value.type, String) else value

    def _match(self, text: ColumnElement[Any], condition: Match) -> Predicate:
        if not condition.ignores_case and not self.is_postgresql:
            return text.op("GLOB", is_comparison=True)(_make_sqlite_glob(condition.pattern))
        like = _make_like(condition.pattern)
        return text.ilike(like, escape="\\") if condition.ignores_case else text.like(like, escape="\\")

    # Columns of runs

    def _compile_column(self, condition: Compare | Match | OneOf | IsSet) -> Predicate:
        name = condition.field.name
        if name == "experiment":
            return self._compile_experiment(condition)
        if name == "status":
            return _test_status(condition)
        if name in _TEXT_COLUMNS:
            return self._test_text(self._hide(_TEXT_COLUMNS[name]), condition)
        column = self.sort_value(condition.field)
        # Whoever gets here knows that a period has many runs. Sorting them would take longer than reading in order.
        return _test(literal_column("+runs.created_at") if name == "created" else column, condition)

    def _hide(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """The column with a sign that keeps SQLite from using an index on it."""
        if self.is_postgresql or not self.hides_indexes:
            return column
        return literal_column(f"+{column}", String)

    def sort_value(self, field: Field) -> ColumnElement[Any]:
        """The column of `runs` that a field is."""
        match field.name:
            case "duration":
                return func.coalesce(runs.c.ended_at, self.now) - runs.c.started_at
            case "number":
                return runs.c.number
            case "status":
                return runs.c.status
            case "experiment":
                return experiments.c.name
            case "created" | "started" | "ended" | "archived":
                return runs.c[f"{field.name}_at"]
            case _:
                return _TEXT_COLUMNS[field.name]

    def _test_text(self, column: ColumnElement[Any], condition: Compare | Match | OneOf | IsSet) -> Predicate:
        is_set = and_(column.is_not(None), column != "")
        match condition:
            case IsSet():
                return is_set
            case Match():
                return and_(is_set, self._match(column, condition))
            case OneOf():
                return and_(is_set, column.in_([clean(value.text) for value in condition.values]))
            case Compare(operator="="):
                return and_(is_set, column == clean(condition.value.text))
            case Compare():
                return and_(is_set, _COMPARE[condition.operator](self.exact(column), clean(condition.value.text)))

    def _compile_experiment(self, condition: Compare | Match | OneOf | IsSet) -> Predicate:
        """By the numbers of the experiments: there are few of them, and runs are indexed by number."""
        chosen = select(experiments.c.seq).where(self._test_text(experiments.c.name, condition)).limit(10_000)
        found = list(self.connection.execute(chosen).scalars())
        column = self._hide(runs.c.experiment_seq)
        return column == found[0] if len(found) == 1 else column.in_(found)

    def _drive_column(self, condition: Compare | OneOf | IsSet) -> Select[Any] | None:
        name = condition.field.name
        if name == "status" and isinstance(condition, OneOf):
            return _drive_status({value.text for value in condition.values})
        if name == "archived":
            # Few runs are archived, and an index says which.
            return select(runs.c.seq).where(_test(runs.c.archived_at, condition))
        if name == "created" and isinstance(condition, Compare) and condition.operator != "!=":
            return select(runs.c.seq).where(_test(runs.c.created_at, condition))
        is_equal = isinstance(condition, OneOf) or (isinstance(condition, Compare) and condition.operator == "=")
        if is_equal and (name in _INDEXED_TEXTS or name == "experiment"):
            return select(runs.c.seq).where(replace(self, hides_indexes=False)._compile_column(condition))
        return None


def is_equality(condition: Condition) -> bool:
    """Whether it says that a column of runs which has an index with their numbers has one value."""
    return (
        isinstance(condition, Compare)
        and condition.operator == "="
        and condition.field.kind == "column"
        and condition.field.name in ("experiment", "user", "target", "parent")
    )


def is_about(condition: Condition, field: Field) -> TypeGuard[Compare | Match | OneOf | IsSet]:
    """Whether it is a condition on the same argument, metric or label; on any part of a metric."""
    if not isinstance(condition, Compare | Match | OneOf | IsSet):
        return False
    return (condition.field.kind, condition.field.name) == (field.kind, field.name)


def flatten(condition: Condition) -> Iterator[Condition]:
    """The conditions of which all have to be true."""
    if isinstance(condition, And):
        for each in condition.conditions:
            yield from flatten(each)
    else:
        yield condition


def _read_number(is_number: Predicate, text: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((is_number, cast(text, Double)), else_=None)


def _test(column: ColumnElement[Any], condition: Compare | Match | OneOf | IsSet) -> Predicate:
    """A condition on a column of numbers."""
    match condition:
        case Compare():
            return and_(column.is_not(None), _COMPARE[condition.operator](column, _bind(condition.value)))
        case OneOf():
            return and_(column.is_not(None), or_(*(column == _bind(value) for value in condition.values)))
        case _:
            return column.is_not(None)


def _bind(value: Value) -> ColumnElement[Any]:
    """The number as it is: PostgreSQL would round it for a column of whole numbers."""
    return literal(value.number, Double)


def _test_status(condition: Compare | Match | OneOf | IsSet) -> Predicate:
    if not isinstance(condition, OneOf):
        return true()
    return runs.c.status.in_(sorted({value.text for value in condition.values}))


def _drive_status(wanted: set[str]) -> Select[Any] | None:
    if wanted <= set(map(str, ACTIVE)):
        return select(runs.c.seq).where(runs.c.ended_at.is_(None), runs.c.status.in_(sorted(wanted)))
    if wanted <= set(map(str, TERMINAL)):
        return select(runs.c.seq).where(runs.c.ended_at.is_not(None), runs.c.status.in_(sorted(wanted)))
    return None


def _compare_texts(column: ColumnElement[Any], sign: str, texts: list[str]) -> Predicate:
    if sign == "=":
        return column == texts[0] if len(texts) == 1 else column.in_(texts)
    if sign == "!=":
        return column.not_in(texts)
    return and_(true(), _COMPARE[sign](column, texts[0]))


def _spellings(value: Value) -> list[str]:
    """Python writes True, JSON true."""
    word = value.text.lower()
    return [word, word.capitalize()] if word in ("true", "false") else [value.text]


def _label_texts(value: Value) -> list[str]:
    """A number is found however it is written: 1 and 1.0."""
    texts = _spellings(value)
    if value.number is not None:
        texts += [repr(value.number), *([str(int(value.number))] if value.number.is_integer() else [])]
    return list(dict.fromkeys(label_index(text) for text in texts))


def _make_sqlite_glob(pattern: str) -> str:
    """The pattern for SQLite's GLOB, in which brackets are marks too and nothing is escaped by a backslash."""
    return "".join(mark or (f"[{text}]" if text in "*?[" else text) for text, mark in _read_pattern(pattern))


def _make_like(pattern: str) -> str:
    """The pattern for LIKE with a backslash as escape."""
    marks = {"*": "%", "?": "_"}
    return "".join(
        marks[mark] if mark else (f"\\{text}" if text in "%_\\" else text) for text, mark in _read_pattern(pattern)
    )


def _read_pattern(pattern: str) -> Iterator[tuple[str, str]]:
    """Each character of the pattern: one that stands for itself, or a mark."""
    for escaped, mark, plain in _GLOB_MARK.findall(clean(pattern)):
        yield escaped or plain, mark
