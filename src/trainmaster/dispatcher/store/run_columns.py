"""The columns that a search asks for: only these are read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Dialect, Table, select

from trainmaster.dispatcher.store.arguments import shorten
from trainmaster.dispatcher.store.points import METRIC_NAME, SYSTEM
from trainmaster.dispatcher.store.schema import arguments, experiments, metrics, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, is_one_of, list_value
from trainmaster.dispatcher.store.values import clean, decode
from trainmaster.shared.filters import Field, parse_field
from trainmaster.shared.records import PRIORITY_PROPERTY


def _as_is(value: Any) -> Any:
    return value


def _load(text: str) -> Any:
    return json.loads(text) if text else {}


def _load_list(text: str) -> Any:
    return json.loads(text) if text else []


def _read_error(text: str) -> str | None:
    return json.loads(text)["message"] if text else None


def _read_priority(text: str) -> int:
    return int(_load(text).get(PRIORITY_PROPERTY, 0))


# Column of a result to the column of the table that has it, and how its value is read.
_COLUMNS: dict[str, tuple[ColumnElement[Any], Callable[[Any], Any]]] = {
    "id": (runs.c.id, _as_is),
    "name": (runs.c.display_name, _as_is),
    "description": (runs.c.description, _as_is),
    "experiment": (experiments.c.name, _as_is),
    "number": (runs.c.number, _as_is),
    "status": (runs.c.status, _as_is),
    "type": (runs.c.type, _as_is),
    "target": (runs.c.target, _as_is),
    "user": (runs.c.submitted_by, _as_is),
    "parent": (runs.c.parent_id, _as_is),
    "snapshot": (runs.c.snapshot_id, _as_is),
    "error": (runs.c.error, _read_error),
    "created": (runs.c.created_at, _as_is),
    "started": (runs.c.started_at, _as_is),
    "ended": (runs.c.ended_at, _as_is),
    "archived": (runs.c.archived_at, _as_is),
    "waiting_for": (runs.c.waiting_for, _as_is),
    "warnings": (runs.c.warnings, _load_list),
    "nodes": (runs.c.nodes, _load_list),
    "tags": (runs.c.tags, _load),
    "properties": (runs.c.properties, _load),
    "priority": (runs.c.properties, _read_priority),
}
ALL_ARGUMENTS, ALL_METRICS = "arguments", "metrics"
"""Columns that hold everything of a kind, by name; of a metric, its last value."""

_METRIC_COLUMNS = (
    metrics.c.run_seq,
    METRIC_NAME,
    metrics.c.last_number,
    metrics.c.last_form,
    metrics.c.last_text,
    metrics.c.minimum,
    metrics.c.maximum,
    metrics.c.count,
)


@dataclass
class _Run:
    """What was read of one run."""

    columns: Mapping[str, Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Wanted:
    """Which rows the columns need. A name None stands for all."""

    fields: Mapping[str, Field | None]
    """Each column by the name it was asked for; None for one that only a result has."""

    @property
    def columns(self) -> list[str]:
        found = {name for name, field in self.fields.items() if field is None and name in _COLUMNS}
        found |= {"tags"} if self._names("tag") else set()
        found |= {"properties"} if self._names("property") else set()
        for column in self.fields.values():
            if column is not None and column.kind == "column":
                found |= {"started", "ended"} if column.name == "duration" else {column.name}
        return sorted(found)

    @property
    def arguments(self) -> list[str] | None:
        return None if ALL_ARGUMENTS in self.fields else [shorten(name) for name in self._names("argument")]

    @property
    def metrics(self) -> list[str] | None:
        return None if ALL_METRICS in self.fields else [clean(name) for name in self._names("metric")]

    def _names(self, kind: str) -> list[str]:
        return sorted({field.name for field in self.fields.values() if field is not None and field.kind == kind})


def check_columns(columns: Iterable[str]) -> None:
    """Raises an error for a name that is no column."""
    for name in columns:
        _find(name)


def read_columns(
    connection: Connection, seqs: Sequence[int], columns: Sequence[str], now: float
) -> list[dict[str, Any]]:
    """For each run, in the order of `seqs`, these columns by name."""
    wanted = _Wanted({name: _find(name) for name in columns})
    found: dict[int, _Run] = {}
    if seqs:
        _read_runs(connection, seqs, wanted.columns, found)
        _read_arguments(connection, seqs, wanted.arguments, found)
        _read_metrics(connection, seqs, wanted.metrics, found)
    return [{name: _value_of(found[seq], name, field, now) for name, field in wanted.fields.items()} for seq in seqs]


def _find(name: str) -> Field | None:
    if name in (ALL_ARGUMENTS, ALL_METRICS, "waiting_for", "warnings", "nodes", "tags", "properties", "priority"):
        return None
    return parse_field(name)


def _read_runs(connection: Connection, seqs: Sequence[int], names: Sequence[str], found: dict[int, _Run]) -> None:
    statement = _select_runs(connection.dialect, tuple(names))
    readers = [_COLUMNS[name][1] for name in names]
    for seq, *values in statement.rows(connection, seqs=list_value(seqs, connection.dialect)):
        found[seq] = _Run({name: read(value) for name, read, value in zip(names, readers, values, strict=True)})


@lru_cache(maxsize=256)
def _select_runs(dialect: Dialect, names: tuple[str, ...]) -> PreparedSelect:
    columns = [_COLUMNS[name][0] for name in names]
    table = runs.join(experiments) if "experiment" in names else runs
    rows = select(runs.c.seq, *columns).select_from(table)
    return PreparedSelect(rows.where(is_one_of(runs.c.seq, "seqs", dialect)))


def _read_arguments(
    connection: Connection, seqs: Sequence[int], names: Sequence[str] | None, found: dict[int, _Run]
) -> None:
    columns = (arguments.c.run_seq, arguments.c.name, arguments.c.text, arguments.c.number)
    for seq, name, text, number in _read_rows(connection, arguments, columns, seqs, names):
        found[seq].arguments[name] = text if number is None else number


def _read_metrics(
    connection: Connection, seqs: Sequence[int], names: Sequence[str] | None, found: dict[int, _Run]
) -> None:
    for seq, name, number, form, text, minimum, maximum, count in _read_rows(
        connection, metrics, _METRIC_COLUMNS, seqs, names
    ):
        found[seq].metrics[name] = (decode(number, form, text), minimum, maximum, count)


def _read_rows(
    connection: Connection,
    table: Table,
    columns: tuple[ColumnElement[Any], ...],
    seqs: Sequence[int],
    names: Sequence[str] | None,
) -> Sequence[tuple[Any, ...]]:
    if names is not None and not names:
        return ()
    dialect = connection.dialect
    statement = _select_rows(dialect, table, columns, names is not None)
    values = {"seqs": list_value(seqs, dialect), **({} if names is None else {"names": list_value(names, dialect)})}
    return statement.rows(connection, **values)


@lru_cache(maxsize=16)
def _select_rows(
    dialect: Dialect, table: Table, columns: tuple[ColumnElement[Any], ...], has_names: bool
) -> PreparedSelect:
    rows = select(*columns).where(is_one_of(table.c.run_seq, "seqs", dialect))
    if has_names:
        return PreparedSelect(rows.where(is_one_of(table.c.name, "names", dialect)))
    # Of metrics, all are those that the script logged.
    return PreparedSelect(rows.where(metrics.c.kind != SYSTEM) if table is metrics else rows)


_PARTS = {"last": 0, "min": 1, "max": 2, "count": 3}


def _value_of(run: _Run, name: str, asked: Field | None, now: float) -> Any:
    if asked is None:
        if name == ALL_ARGUMENTS:
            return run.arguments
        return {each: values[0] for each, values in run.metrics.items()} if name == ALL_METRICS else run.columns[name]
    match asked.kind:
        case "argument":
            return run.arguments.get(shorten(asked.name))
        case "metric":
            values = run.metrics.get(clean(asked.name))
            return None if values is None else values[_PARTS[asked.part]]
        case "tag" | "property":
            return run.columns["tags" if asked.kind == "tag" else "properties"].get(asked.name)
        case _ if asked.name == "duration":
            started, ended = run.columns["started"], run.columns["ended"]
            return None if started is None else (now if ended is None else ended) - started
        case _:
            return run.columns[asked.name]
