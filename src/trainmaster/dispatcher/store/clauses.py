"""Turns clauses of MLflow's filters into SQL that means the same on SQLite and PostgreSQL.

No expression here is true for NULL, as in MLflow: what has no value does not match, whatever the comparator.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import ColumnElement, Dialect, Double, false, literal

from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.filters.clauses import Clause

Predicate = ColumnElement[bool]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare_text(column: ColumnElement[Any], clause: Clause, dialect: Dialect) -> Predicate:
    """The clause on a column of texts."""
    match clause.comparator, clause.value:
        case "IN", tuple() as values:
            return column.in_(_clean_all(values))
        case "NOT IN", tuple() as values:
            return column.not_in(_clean_all(values))
        case "LIKE", str() as pattern:
            if dialect.name == "postgresql":
                return column.like(_escape(clean(pattern)))
            return column.op("GLOB", is_comparison=True)(make_glob(clean(pattern)))
        case "ILIKE", str() as pattern:
            return column.ilike(_escape(clean(pattern)) if dialect.name == "postgresql" else clean(pattern))
        case sign, value:
            compared: Predicate = _COMPARE[sign](column, clean(str(value)))
            return compared


def compare_number(column: ColumnElement[Any], clause: Clause) -> Predicate:
    """The clause on a column of numbers."""
    if not isinstance(clause.value, int | float):
        return false()
    compared: Predicate = _COMPARE[clause.comparator](column, literal(float(clause.value), Double))
    return compared


def compare_milliseconds(column: ColumnElement[Any], clause: Clause) -> Predicate:
    """The clause, which has milliseconds, on a column of seconds. A time counts as the nearest millisecond."""
    value = clause.value
    if not isinstance(value, int | float):
        return false()
    whole = int(value // 1)
    # Milliseconds are rounded in answers.
    start, end = (literal((each - 0.5) / 1000, Double) for each in (whole, whole + 1))
    is_whole = whole == value
    match clause.comparator:
        case "=":
            return (column >= start) & (column < end) if is_whole else false()
        case "!=":
            return (column < start) | (column >= end) if is_whole else column.is_not(None)
        case "<":
            return column < (start if is_whole else end)
        case "<=":
            return column < end
        case ">":
            return column >= end
        case _:
            return column >= (start if is_whole else end)


def make_glob(pattern: str) -> str:
    """A pattern of LIKE for SQLite's GLOB, which regards case.

    >>> make_glob("50%_[a]*")
    '50*?[[]a][*]'
    """
    marks = {"%": "*", "_": "?", "*": "[*]", "?": "[?]", "[": "[[]"}
    return "".join(marks.get(each, each) for each in pattern)


def _escape(pattern: str) -> str:
    """In PostgreSQL a backslash escapes the next character; in MLflow it is a character like any other."""
    return pattern.replace("\\", "\\\\")


def _clean_all(values: Iterable[str]) -> list[str]:
    return [clean(value) for value in values]
