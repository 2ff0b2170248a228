"""Compute targets, datastores and facts: small tables, kept whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update

from trainmaster.dispatcher.store.schema import datastores, facts, targets
from trainmaster.dispatcher.store.values import dump
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import DatastoreRecord, TargetRecord


def put_target(connection: Connection, target: TargetRecord) -> None:
    """Add the target, or put it in the place of the one of its name."""
    _put(connection, targets, {**asdict(target), "options": dump(dict(target.options))})


def find_targets(connection: Connection, name: str | None = None) -> list[TargetRecord]:
    """The targets, by name."""
    return [TargetRecord(**row) for row in _find(connection, targets, name)]


def put_datastore(connection: Connection, datastore: DatastoreRecord) -> None:
    """Add the datastore, or put it in the place of the one of its name; at most one stays the default."""
    if datastore.is_default:
        connection.execute(update(datastores).values(is_default=False))
    _put(connection, datastores, {**asdict(datastore), "options": dump(dict(datastore.options))})


def find_datastores(connection: Connection, name: str | None = None) -> list[DatastoreRecord]:
    """The datastores, by name."""
    return [DatastoreRecord(**row) for row in _find(connection, datastores, name)]


def set_default_datastore(connection: Connection, name: str) -> None:
    """Make this datastore the default, and no other."""
    if not find_datastores(connection, name):
        raise UserErrorException(f"There is no datastore named {name!r}")
    connection.execute(update(datastores).values(is_default=datastores.c.name == name))


def remove(connection: Connection, table: Table, name: str) -> bool:
    """Delete by name; whether it was there."""
    return bool(connection.execute(delete(table).where(table.c.name == name)).rowcount)


def get_fact(connection: Connection, key: str) -> Any:
    """The fact's value, or None."""
    row = connection.execute(select(facts.c.value).where(facts.c.key == key)).one_or_none()
    return json.loads(row[0]) if row is not None else None


def put_fact(connection: Connection, key: str, value: Any) -> None:
    """Set the fact to any JSON value."""
    connection.execute(delete(facts).where(facts.c.key == key))
    connection.execute(insert(facts).values(key=key, value=dump(value)))


def _put(connection: Connection, table: Table, columns: dict[str, Any]) -> None:
    connection.execute(delete(table).where(table.c.name == columns["name"]))
    connection.execute(insert(table).values(**columns))


def _find(connection: Connection, table: Table, name: str | None) -> list[dict[str, Any]]:
    statement = select(table).order_by(table.c.name)
    if name is not None:
        statement = statement.where(table.c.name == name)
    rows = connection.execute(statement).mappings()
    return [{**row, "options": json.loads(row["options"])} for row in rows]
