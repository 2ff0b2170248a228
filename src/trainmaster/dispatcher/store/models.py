"""Models: every version of every name. A deleted one keeps its row, unseen, so that its number is never given again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from trainmaster.dispatcher.store.schema import models
from trainmaster.dispatcher.store.values import clean, dump
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import ModelRecord
from trainmaster.shared.serialization import from_plain, to_plain

_COLUMNS = tuple(field.name for field in fields(ModelRecord))
_JSON = ("tags", "properties", "lineage", "datasets", "resources", "facts")
_LIVING = models.c.deleted_at.is_(None)


def register(connection: Connection, record: ModelRecord) -> ModelRecord:
    """Keep a model as the next version of its name; one of its key that is there stays as it is."""
    known = by_key(connection, record.key)
    if known is not None:
        return known
    last = connection.execute(select(func.max(models.c.version)).where(models.c.name == record.name)).scalar()
    now = time.time()
    numbered = replace(record, version=(last or 0) + 1, created_at=now, modified_at=now)
    connection.execute(insert(models).values(**_row(to_plain(numbered))))
    return numbered


def by_key(connection: Connection, key: str) -> ModelRecord | None:
    """The model of this registration, also if it was deleted since."""
    row = connection.execute(select(models).where(models.c.key == key)).mappings().one_or_none()
    return None if row is None else _record(row)


def get(connection: Connection, name: str, version: int) -> ModelRecord | None:
    """The model of this name and version."""
    chosen = select(models).where(_LIVING, models.c.name == name, models.c.version == version)
    row = connection.execute(chosen).mappings().one_or_none()
    return None if row is None else _record(row)


def find(connection: Connection, equal: Mapping[str, Any]) -> list[ModelRecord]:
    """All models whose columns are equal to these values, newest first."""
    statement = select(models).where(_LIVING, *(models.c[name] == value for name, value in equal.items()))
    return [_record(row) for row in connection.execute(statement.order_by(models.c.seq.desc())).mappings()]


def change(connection: Connection, name: str, version: int, values: Mapping[str, Any]) -> None:
    """Set these fields."""
    connection.execute(_one(name, version).values(**_row(values), modified_at=time.time()))


def merge(
    connection: Connection,
    record: ModelRecord,
    column: str,
    added: Mapping[str, Any],
    dropped: Iterable[str],
    fixed: bool,
) -> None:
    """Add to a column of pairs and drop from it; where it is `fixed`, what is there cannot be given another value."""
    chosen = select(models.c[column]).where(models.c.name == record.name, models.c.version == record.version)
    before: dict[str, Any] = json.loads(connection.execute(chosen).scalar_one())
    changed = [key for key, value in added.items() if fixed and before.get(key, value) != value]
    if changed:
        raise UserErrorException(
            f"property '{changed[0]}' of model {record.name}:{record.version} is '{before[changed[0]]}' already",
            cause="Properties cannot be changed once they are there.",
            hint="Use a tag for what changes.",
        )
    gone = set(dropped)
    after = {key: value for key, value in {**before, **added}.items() if key not in gone}
    change(connection, record.name, record.version, {column: after})


def forget(connection: Connection, name: str, version: int) -> None:
    """Hide a model for ever."""
    connection.execute(_one(name, version).values(deleted_at=time.time()))


def manifests(connection: Connection) -> set[str]:
    """The contents that models have."""
    return set(connection.execute(select(models.c.manifest).where(_LIVING)).scalars())


def _one(name: str, version: int) -> Any:
    return update(models).where(_LIVING, models.c.name == name, models.c.version == version)


def _row(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _stored(name, value) for name, value in values.items()}


def _stored(name: str, value: Any) -> Any:
    if name in _JSON:
        return clean(dump(to_plain(value)))
    return clean(value) if isinstance(value, str) else value


def _record(row: RowMapping) -> ModelRecord:
    plain = {name: json.loads(row[name]) if name in _JSON else row[name] for name in _COLUMNS}
    return from_plain(ModelRecord, plain)
