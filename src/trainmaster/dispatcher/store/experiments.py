"""Experiments: named groups of runs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from trainmaster.dispatcher.store.schema import experiments, runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.values import dump_collection
from trainmaster.job.errors import UserErrorException
from trainmaster.job.script.labels import matches
from trainmaster.shared.records import ExperimentRecord

View = Literal["active", "archived", "all"]

_COLUMNS = (
    experiments.c.id,
    experiments.c.name,
    experiments.c.created_at,
    experiments.c.archived_at,
    experiments.c.tags,
)
_BY_NAME = PreparedSelect(select(*_COLUMNS).where(experiments.c.name == bindparam("name")))
_ALL = PreparedSelect(select(*_COLUMNS).order_by(experiments.c.seq))


def get(connection: Connection, name: str) -> ExperimentRecord | None:
    """The experiment of this name."""
    row = _BY_NAME.row(connection, name=name)
    return _record(row) if row else None


def ensure(connection: Connection, name: str, at: float) -> ExperimentRecord:
    """The experiment of this name, made at need."""
    found = get(connection, name)
    if found is not None:
        return found
    record = ExperimentRecord(id=str(uuid.uuid4()), name=name, created_at=at)
    connection.execute(insert(experiments).values(id=record.id, name=name, created_at=at, run_count=0, tags=""))
    return record


def find(connection: Connection, name: str | None, view: View, tags: Mapping[str, Any]) -> list[ExperimentRecord]:
    """Experiments, oldest first. A tag asked for with None only has to be there."""
    rows = _ALL.rows(connection) if name is None else _BY_NAME.rows(connection, name=name)
    records = [_record(row) for row in rows]
    return [record for record in records if _in_view(record, view) and matches(record.tags, tags)]


def change(connection: Connection, name: str, changes: Mapping[str, Any]) -> ExperimentRecord:
    """Set `tags` (all of them) or `archived_at`."""
    columns = dict(changes)
    if "tags" in columns:
        columns["tags"] = dump_collection(columns["tags"])
    if columns:
        connection.execute(update(experiments).where(experiments.c.name == name).values(**columns))
    return _existing(connection, name)


def remove(connection: Connection, name: str) -> None:
    """Delete an experiment that has no runs."""
    _existing(connection, name)
    has_runs = select(runs.c.seq).where(runs.c.experiment_seq == experiments.c.seq).exists()
    unused = (experiments.c.name == name) & ~has_runs
    if connection.execute(delete(experiments).where(unused)).rowcount == 0:
        raise UserErrorException(
            f"The experiment {name!r} has runs and cannot be deleted",
            hint="Archive it to hide it from lists, or remove its runs with 'trainmaster runs delete' first.",
        )


def _existing(connection: Connection, name: str) -> ExperimentRecord:
    found = get(connection, name)
    if found is None:
        raise UserErrorException(f"There is no experiment named {name!r}")
    return found


def _record(row: tuple[Any, ...]) -> ExperimentRecord:
    identity, name, created_at, archived_at, tags = row
    return ExperimentRecord(identity, name, created_at, archived_at, json.loads(tags) if tags else {})


def _in_view(record: ExperimentRecord, view: View) -> bool:
    return view == "all" or (view == "archived") == (record.archived_at is not None)
