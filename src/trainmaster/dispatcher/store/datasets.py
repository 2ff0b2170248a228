"""Datasets: every version of a registered name, and those that runs used without one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from trainmaster.dispatcher.store.schema import datasets
from trainmaster.dispatcher.store.values import clean, dump
from trainmaster.shared.job_spec import DatasetDefinition
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain


def save(connection: Connection, record: DatasetRecord) -> DatasetRecord:
    """Keep a dataset without a name, unless there is one of its id."""
    known = get(connection, record.id)
    if known is None:
        _insert(connection, record)
    return known or record


def register(connection: Connection, record: DatasetRecord) -> DatasetRecord:
    """Keep a dataset as the next version of its name; one of its id that is there stays as it is."""
    known = get(connection, record.id)
    if known is not None:
        return known
    newest = by_name(connection, record.name)
    version = (newest.version or 0) + 1 if newest else 1
    numbered = DatasetRecord(
        record.id, record.definition, record.name, version, record.description, record.tags, record.created_at
    )
    _insert(connection, numbered)
    return numbered


def get(connection: Connection, dataset_id: str) -> DatasetRecord | None:
    """The dataset of this id."""
    row = connection.execute(select(datasets).where(datasets.c.id == dataset_id)).mappings().one_or_none()
    return None if row is None else _record(row)


def by_name(connection: Connection, name: str, version: int | None = None) -> DatasetRecord | None:
    """The dataset of this name, in its newest version if none is given."""
    statement = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc()).limit(1)
    if version is not None:
        statement = statement.where(datasets.c.version == version)
    row = connection.execute(statement).mappings().one_or_none()
    return None if row is None else _record(row)


def newest(connection: Connection) -> list[DatasetRecord]:
    """The newest version of each name, by name."""
    last = select(datasets.c.name, func.max(datasets.c.version).label("version")).where(datasets.c.name.is_not(None))
    chosen = last.group_by(datasets.c.name).subquery()
    statement = select(datasets).join(
        chosen, (datasets.c.name == chosen.c.name) & (datasets.c.version == chosen.c.version)
    )
    return [_record(row) for row in connection.execute(statement.order_by(datasets.c.name)).mappings()]


def change(connection: Connection, dataset_id: str, description: str | None, tags: Mapping[str, Any] | None) -> None:
    """Set what was given."""
    values: dict[str, Any] = {}
    if description is not None:
        values["description"] = clean(description)
    if tags is not None:
        values["tags"] = dump(dict(tags))
    if values:
        connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(**values))


def forget(connection: Connection, name: str) -> int:
    """Delete all versions of a name; how many there were."""
    return int(connection.execute(delete(datasets).where(datasets.c.name == name)).rowcount)


def _insert(connection: Connection, record: DatasetRecord) -> None:
    connection.execute(
        insert(datasets).values(
            id=record.id,
            name=record.name or None,
            version=record.version,
            definition=clean(json.dumps(to_plain(record.definition), sort_keys=True)),
            description=clean(record.description),
            tags=dump(dict(record.tags)),
            created_at=record.created_at,
        )
    )


def _record(row: RowMapping) -> DatasetRecord:
    return DatasetRecord(
        id=row["id"],
        definition=from_plain(DatasetDefinition, json.loads(row["definition"])),
        name=row["name"] or "",
        version=row["version"],
        description=row["description"],
        tags=json.loads(row["tags"]),
        created_at=row["created_at"],
    )
