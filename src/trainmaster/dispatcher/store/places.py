"""Compute targets, datastores and facts: small tables that are written whole rows at a time."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Table, delete, insert, select, update

from trainmaster.dispatcher.store.record_rows import RecordRows
from trainmaster.dispatcher.store.schema import datastores, facts, targets
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.values import dump
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import DatastoreRecord, TargetRecord

T = TypeVar("T", TargetRecord, DatastoreRecord)


class _NamedRecords(Repository, Generic[T]):
    """Records that are identified by a name."""

    _table: Table
    _rows: RecordRows[T]

    @writes
    def put(self, connection: Connection, record: T) -> None:
        """Add the record, or replace the one with its name."""
        connection.execute(delete(self._table).where(self._table.c.name == record.name))
        connection.execute(insert(self._table).values(**self._rows.columns_of(record)))

    @reads
    def get(self, connection: Connection, name: str) -> T | None:
        """The record with this name."""
        row = connection.execute(select(self._table).where(self._table.c.name == name)).mappings().one_or_none()
        return None if row is None else self._rows.record_of(row)

    @reads
    def list_all(self, connection: Connection) -> list[T]:
        """All records, by name."""
        rows = connection.execute(select(self._table).order_by(self._table.c.name)).mappings()
        return [self._rows.record_of(row) for row in rows]

    @writes
    def delete(self, connection: Connection, name: str) -> bool:
        """Delete the record and return whether there was one."""
        return bool(connection.execute(delete(self._table).where(self._table.c.name == name)).rowcount)


class Targets(_NamedRecords[TargetRecord]):
    """The compute targets of a workspace."""

    _table = targets
    _rows = RecordRows(TargetRecord, frozenset({"options"}))


class Datastores(_NamedRecords[DatastoreRecord]):
    """The datastores of a workspace. At most one is the default."""

    _table = datastores
    _rows = RecordRows(DatastoreRecord, frozenset({"options"}))

    @writes
    def put(self, connection: Connection, record: DatastoreRecord) -> None:
        """Add the datastore, or replace the one with its name. A new default replaces the old one."""
        if record.is_default:
            connection.execute(update(datastores).values(is_default=False))
        super().put(record)

    @writes
    def set_default(self, connection: Connection, name: str) -> None:
        """Make this datastore the default."""
        if self.get(name) is None:
            raise UserErrorException(f"There is no datastore named {name!r}")
        connection.execute(update(datastores).values(is_default=datastores.c.name == name))


class Facts(Repository):
    """Values that the dispatcher remembers: any JSON by a key."""

    @reads
    def get(self, connection: Connection, key: str) -> Any:
        """The value of this key, or None."""
        row = connection.execute(select(facts.c.value).where(facts.c.key == key)).one_or_none()
        return json.loads(row[0]) if row is not None else None

    @writes
    def put(self, connection: Connection, key: str, value: Any) -> None:
        """Keep any JSON value under this key."""
        connection.execute(delete(facts).where(facts.c.key == key))
        connection.execute(insert(facts).values(key=key, value=dump(value)))
