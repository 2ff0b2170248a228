"""Lists of runs: newest first, a page at a time, one query a page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from trainmaster.dispatcher.store.labels import PROPERTY, TAG, properties_of
from trainmaster.dispatcher.store.rows import runs_of, select_runs
from trainmaster.dispatcher.store.schema import experiments, run_labels, runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.values import label_index, name_index
from trainmaster.shared.records import ACTIVE, RunQuery, RunRecord


class _Shape(NamedTuple):
    """The parts of a query that decide its SQL; the values are parameters. One statement is compiled per shape."""

    experiment: bool
    parent: str
    """none (top level only), any, children or descendants."""
    type: bool
    statuses: int
    active: bool
    target: bool
    tags: tuple[bool, ...]
    """For each tag, whether the query has a value for it."""
    properties: tuple[bool, ...]
    before: bool
    archived: bool
    """Whether archived runs are listed too."""


def find(connection: Connection, query: RunQuery) -> list[RunRecord]:
    """The runs that match `query`."""
    statement = _statement(_shape(query))
    return runs_of(statement.rows(connection, **_values(query)))


def _shape(query: RunQuery) -> _Shape:
    return _Shape(
        experiment=query.experiment is not None,
        parent=_parent(query),
        type=query.type is not None,
        statuses=len(query.statuses),
        active=bool(query.statuses) and ACTIVE.issuperset(query.statuses),
        target=query.target is not None,
        tags=tuple(value is not None for value in query.tags.values()),
        properties=tuple(value is not None for value in query.properties.values()),
        before=query.before_seq is not None,
        archived=query.archived or query.parent_id is not None,
    )


def _parent(query: RunQuery) -> str:
    if query.parent_id is not None:
        return "descendants" if query.recursive else "children"
    return "any" if query.include_children else "none"


def _values(query: RunQuery) -> dict[str, Any]:
    values: dict[str, Any] = {
        "experiment": query.experiment,
        "parent": query.parent_id,
        "type": query.type,
        "target": query.target,
        "before": query.before_seq,
        "most": max(query.limit, 0),
    }
    values.update((f"status{n}", str(status)) for n, status in enumerate(query.statuses))
    values.update(_label_values(TAG, query.tags))
    known = {name: value for name, value in query.properties.items() if value is not None}
    values.update(_label_values(PROPERTY, {**query.properties, **properties_of(known)}))
    return {name: value for name, value in values.items() if value is not None}


def _label_values(kind: int, labels: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for n, (name, value) in enumerate(labels.items()):
        values[f"name{kind}_{n}"] = name_index(name)
        if value is not None:
            values[f"value{kind}_{n}"] = label_index(value)
    return values


@lru_cache(maxsize=256)
def _statement(shape: _Shape) -> PreparedSelect:
    statement = select_runs()
    if shape.experiment:
        # By its number: with the name in the join, SQLite may scan all runs and compare names.
        chosen = select(experiments.c.seq).where(experiments.c.name == bindparam("experiment"))
        statement = statement.where(runs.c.experiment_seq == chosen.scalar_subquery())
    statement = statement.where(*_conditions(shape))
    statement, position = _with_labels(statement, shape)
    if shape.before:
        statement = statement.where(position < bindparam("before"))
    return PreparedSelect(statement.order_by(position.desc()).limit(bindparam("most")))


def _conditions(shape: _Shape) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if shape.parent == "none":
        conditions.append(runs.c.parent_id.is_(None))
    elif shape.parent == "children":
        conditions.append(runs.c.parent_id == bindparam("parent"))
    elif shape.parent == "descendants":
        conditions.append(runs.c.id.in_(_descendants()))
    if not shape.archived:
        conditions.append(runs.c.archived_at.is_(None))
    if shape.type:
        conditions.append(runs.c.type == bindparam("type"))
    if shape.target:
        conditions.append(runs.c.target == bindparam("target"))
    if shape.statuses:
        conditions.append(runs.c.status.in_([bindparam(f"status{n}") for n in range(shape.statuses)]))
    if shape.active:
        # Lets SQLite use the small index of runs that have not ended.
        unended = runs.alias("unended")
        conditions.append(runs.c.seq.in_(select(unended.c.seq).where(unended.c.ended_at.is_(None))))
    return conditions


def _descendants() -> Select[Any]:
    children = select(runs.c.id).where(runs.c.parent_id == bindparam("parent")).cte("descendants", recursive=True)
    younger = runs.alias("younger")
    # UNION, not UNION ALL: it ends even if a damaged table contains a cycle.
    below = children.union(select(younger.c.id).where(younger.c.parent_id == children.c.id))
    return select(below.c.id)


def _with_labels(statement: Select[Any], shape: _Shape) -> tuple[Select[Any], ColumnElement[int]]:
    """The statement with its conditions on labels, and the column that orders it.

    For one value the index of labels is in the order of runs, so a query by value scans it from the newest.
    """
    position: ColumnElement[int] = runs.c.seq
    for kind, labels in ((TAG, shape.tags), (PROPERTY, shape.properties)):
        for n, with_value in enumerate(labels):
            label = run_labels.alias(f"label{kind}_{n}")
            wanted = (label.c.kind == kind) & (label.c.name == bindparam(f"name{kind}_{n}"))
            if not with_value:
                statement = statement.where(runs.c.seq.in_(select(label.c.run_seq).where(wanted)))
                continue
            statement = statement.join(label, label.c.run_seq == runs.c.seq)
            statement = statement.where(wanted, label.c.value == bindparam(f"value{kind}_{n}"))
            position = label.c.run_seq
    return statement, position
