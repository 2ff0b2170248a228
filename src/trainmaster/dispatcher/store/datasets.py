"""Datasets: every version of a registered name, and those that runs used without registering them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from trainmaster.dispatcher.store.schema import datasets
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.values import clean, dump
from trainmaster.dispatcher.store.versions import next_version, select_newest
from trainmaster.shared.job_spec import DatasetDefinition
from trainmaster.shared.records import DatasetRecord
from trainmaster.shared.serialization import from_plain, to_plain


class Datasets(Repository):
    """The datasets of a workspace."""

    @writes
    def save(self, connection: Connection, dataset: DatasetRecord) -> DatasetRecord:
        """Keep a dataset without a name; a dataset with this id that is there already stays as it is."""
        known = self.get(dataset.id)
        if known is None:
            connection.execute(insert(datasets).values(**_columns_of(dataset)))
        return known or dataset

    @writes
    def register(self, connection: Connection, dataset: DatasetRecord) -> DatasetRecord:
        """Keep a dataset as the next version of its name; a dataset with this id stays as it is."""
        known = self.get(dataset.id)
        if known is not None:
            return known
        numbered = replace(dataset, version=next_version(connection, datasets, dataset.name))
        connection.execute(insert(datasets).values(**_columns_of(numbered)))
        return numbered

    @reads
    def get(self, connection: Connection, dataset_id: str) -> DatasetRecord | None:
        """The dataset with this id."""
        row = connection.execute(select(datasets).where(datasets.c.id == dataset_id)).mappings().one_or_none()
        return None if row is None else _record_of(row)

    @reads
    def get_by_name(self, connection: Connection, name: str, version: int | None = None) -> DatasetRecord | None:
        """The dataset with this name and version; without a version, the newest."""
        statement = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc()).limit(1)
        if version is not None:
            statement = statement.where(datasets.c.version == version)
        row = connection.execute(statement).mappings().one_or_none()
        return None if row is None else _record_of(row)

    @reads
    def list_newest(self, connection: Connection) -> list[DatasetRecord]:
        """The newest version of each registered dataset, by name."""
        return [_record_of(row) for row in connection.execute(select_newest(datasets)).mappings()]

    @reads
    def list_versions(self, connection: Connection, name: str) -> list[DatasetRecord]:
        """All versions of a registered dataset, the newest first."""
        statement = select(datasets).where(datasets.c.name == name).order_by(datasets.c.version.desc())
        return [_record_of(row) for row in connection.execute(statement).mappings()]

    @writes
    def update(
        self,
        connection: Connection,
        dataset_id: str,
        description: str | None = None,
        tags: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the description or all tags."""
        values: dict[str, Any] = {}
        if description is not None:
            values["description"] = clean(description)
        if tags is not None:
            values["tags"] = dump(dict(tags))
        if values:
            connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(**values))

    @writes
    def delete(self, connection: Connection, name: str) -> int:
        """Delete all versions of a name and return how many there were."""
        return int(connection.execute(delete(datasets).where(datasets.c.name == name)).rowcount)


def _columns_of(record: DatasetRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name or None,
        "version": record.version,
        "definition": clean(json.dumps(to_plain(record.definition), sort_keys=True)),
        "description": clean(record.description),
        "tags": dump(dict(record.tags)),
        "created_at": record.created_at,
    }


def _record_of(row: RowMapping) -> DatasetRecord:
    return DatasetRecord(
        id=row["id"],
        definition=from_plain(DatasetDefinition, json.loads(row["definition"])),
        name=row["name"] or "",
        version=row["version"],
        description=row["description"],
        tags=json.loads(row["tags"]),
        created_at=row["created_at"],
    )
