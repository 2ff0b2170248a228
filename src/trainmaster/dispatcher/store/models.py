"""Models: every version of every name. A deleted one keeps its row, so that its number is never used again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, select, update

from trainmaster.dispatcher.store.record_rows import RecordRows
from trainmaster.dispatcher.store.schema import models
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.dispatcher.store.versions import next_version
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.records import ModelRecord

_ROWS = RecordRows(ModelRecord, frozenset({"tags", "properties", "lineage", "datasets", "resources", "facts"}))
_IS_KEPT = models.c.deleted_at.is_(None)


class Models(Repository):
    """The registered models of a workspace."""

    @writes
    def register(self, connection: Connection, model: ModelRecord) -> ModelRecord:
        """Keep a model as the next version of its name; a model that is registered already stays as it is."""
        known = self.get_by_key(model.key)
        if known is not None:
            return known
        now = time.time()
        version = next_version(connection, models, model.name)
        numbered = replace(model, version=version, created_at=now, modified_at=now)
        connection.execute(insert(models).values(**_ROWS.columns_of(numbered)))
        return numbered

    @reads
    def get_by_key(self, connection: Connection, key: str) -> ModelRecord | None:
        """The model of this registration, even if it has been deleted."""
        row = connection.execute(select(models).where(models.c.key == key)).mappings().one_or_none()
        return None if row is None else _ROWS.record_of(row)

    @reads
    def get(self, connection: Connection, name: str, version: int) -> ModelRecord | None:
        """The model with this name and version."""
        chosen = select(models).where(_IS_KEPT, models.c.name == name, models.c.version == version)
        row = connection.execute(chosen).mappings().one_or_none()
        return None if row is None else _ROWS.record_of(row)

    @reads
    def find(self, connection: Connection, /, **equal: Any) -> list[ModelRecord]:
        """The models whose columns equal these values, newest first."""
        statement = select(models).where(_IS_KEPT, *(models.c[name] == value for name, value in equal.items()))
        rows = connection.execute(statement.order_by(models.c.seq.desc())).mappings()
        return [_ROWS.record_of(row) for row in rows]

    @writes
    def update(self, connection: Connection, /, name: str, version: int, **values: Any) -> None:
        """Set fields of a model."""
        connection.execute(_update_one(name, version).values(**_ROWS.encode(values), modified_at=time.time()))

    @writes
    def relabel(
        self,
        connection: Connection,
        model: ModelRecord,
        tags: Mapping[str, str],
        removed_tags: Iterable[str],
        properties: Mapping[str, str],
        facts: Mapping[str, Any],
    ) -> None:
        """Add tags, properties and facts and remove tags, all or nothing; an existing property cannot change."""
        columns = select(models.c.tags, models.c.properties, models.c.facts)
        here = (models.c.name == model.name) & (models.c.version == model.version)
        row = connection.execute(columns.where(here)).one()
        old_tags, old_properties, old_facts = (json.loads(text) for text in row)
        _refuse_changed_properties(model, old_properties, properties)
        removed = set(removed_tags)
        self.update(
            model.name,
            model.version,
            tags={name: value for name, value in {**old_tags, **tags}.items() if name not in removed},
            properties={**old_properties, **properties},
            facts={**old_facts, **facts},
        )

    @writes
    def delete(self, connection: Connection, name: str, version: int) -> None:
        """Hide a model for good."""
        connection.execute(_update_one(name, version).values(deleted_at=time.time()))

    @reads
    def find_manifests(self, connection: Connection) -> set[str]:
        """The digests of the contents that models have."""
        return set(connection.execute(select(models.c.manifest).where(_IS_KEPT)).scalars())


def _update_one(name: str, version: int) -> Any:
    return update(models).where(_IS_KEPT, models.c.name == name, models.c.version == version)


def _refuse_changed_properties(model: ModelRecord, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name, value in new.items():
        if old.get(name, value) != value:
            raise UserErrorException(
                f"property '{name}' of model {model.name}:{model.version} is '{old[name]}' already",
                cause="Properties cannot be changed once they are there.",
                hint="Use a tag for what changes.",
            )
