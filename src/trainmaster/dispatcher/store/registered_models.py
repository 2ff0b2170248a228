"""The names of models. MLflow's clients create, describe, tag, rename and delete them; versions are in `models`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from trainmaster.dispatcher.store.models import ROWS as VERSION_ROWS
from trainmaster.dispatcher.store.models import now_in_milliseconds
from trainmaster.dispatcher.store.record_rows import RecordRows
from trainmaster.dispatcher.store.schema import models, registered_models
from trainmaster.dispatcher.store.transactions import Repository, reads, writes
from trainmaster.shared.records import ModelRecord, RegisteredModelRecord

ROWS = RecordRows(RegisteredModelRecord, frozenset({"tags"}))


class RegisteredModels(Repository):
    """The names in the registry of a workspace."""

    @reads
    def get(self, connection: Connection, name: str) -> RegisteredModelRecord | None:
        """A name; None if it is not registered."""
        row = connection.execute(select(registered_models).where(registered_models.c.name == name)).mappings().first()
        return None if row is None else ROWS.record_of(row)

    @reads
    def list_versions(self, connection: Connection, name: str) -> list[ModelRecord]:
        """The versions of a name, the first one first."""
        chosen = select(models).where(models.c.name == name, models.c.deleted_at.is_(None))
        rows = connection.execute(chosen.order_by(models.c.version)).mappings()
        return [VERSION_ROWS.record_of(row) for row in rows]

    @writes
    def create(
        self, connection: Connection, name: str, description: str, tags: Mapping[str, str]
    ) -> RegisteredModelRecord | None:
        """Register a name; None if it is registered already."""
        if self.get(name) is not None:
            return None
        now = now_in_milliseconds()
        made = RegisteredModelRecord(name, description, dict(tags), now, now)
        connection.execute(insert(registered_models).values(**ROWS.columns_of(made)))
        return made

    @writes
    def describe(self, connection: Connection, name: str, description: str) -> None:
        """Set the description of a name."""
        self._set(connection, name, description=description, modified_at=now_in_milliseconds())

    @writes
    def set_tags(self, connection: Connection, name: str, tags: Mapping[str, str]) -> None:
        """Set all tags of a name."""
        self._set(connection, name, tags=dict(tags))

    @writes
    def rename(self, connection: Connection, name: str, new_name: str) -> bool:
        """Rename a name with all its versions. Returns False, and changes nothing, if the new name is registered."""
        if self.get(new_name) is not None:
            return False
        now = now_in_milliseconds()
        # Only deleted versions can be there.
        connection.execute(delete(models).where(models.c.name == new_name))
        connection.execute(update(models).where(models.c.name == name).values(name=new_name, modified_at=now))
        self._set(connection, name, name=new_name, modified_at=now)
        return True

    @writes
    def delete(self, connection: Connection, name: str) -> None:
        """Delete a name with all its versions. As in MLflow, the versions of a new model of that name begin at 1."""
        connection.execute(delete(models).where(models.c.name == name))
        connection.execute(delete(registered_models).where(registered_models.c.name == name))

    def _set(self, connection: Connection, name: str, /, **values: Any) -> None:
        connection.execute(
            update(registered_models).where(registered_models.c.name == name).values(**ROWS.encode(values))
        )
