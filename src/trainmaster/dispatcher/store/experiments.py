"""Experiments: named groups of runs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from trainmaster.dispatcher.store.removal import delete_logged_models
from trainmaster.dispatcher.store.schema import experiments, logged_models, runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.transactions import Repository, reads, reads_once, writes
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
_CHANGEABLE = frozenset({"tags", "archived_at"})


class Experiments(Repository):
    """The experiments of a workspace."""

    @reads_once
    def get(self, connection: Connection, name: str) -> ExperimentRecord | None:
        """The experiment with this name."""
        row = _BY_NAME.row(connection, name=name)
        return _record_of(row) if row else None

    @writes
    def ensure(self, connection: Connection, name: str, at: float) -> ExperimentRecord:
        """The experiment with this name, created at the time `at` if there is none."""
        found = self.get(name)
        if found is not None:
            return found
        record = ExperimentRecord(id=str(uuid.uuid4()), name=name, created_at=at)
        connection.execute(insert(experiments).values(id=record.id, name=name, created_at=at, run_count=0, tags=""))
        return record

    @reads_once
    def find(
        self,
        connection: Connection,
        name: str | None = None,
        view: View = "active",
        tags: Mapping[str, Any] | None = None,
    ) -> list[ExperimentRecord]:
        """Experiments, oldest first. A tag whose value is None matches any value."""
        rows = _ALL.rows(connection) if name is None else _BY_NAME.rows(connection, name=name)
        records = [_record_of(row) for row in rows]
        return [record for record in records if _is_in_view(record, view) and matches(record.tags, tags or {})]

    @writes
    def update(self, connection: Connection, /, name: str, **changes: Any) -> ExperimentRecord:
        """Set `tags` (all of them) or `archived_at` (None to reactivate)."""
        unknown = sorted(set(changes) - _CHANGEABLE)
        if unknown:
            raise UserErrorException(f"An experiment's {', '.join(unknown)} cannot be changed")
        if "tags" in changes:
            changes["tags"] = dump_collection(changes["tags"])
        if changes:
            connection.execute(update(experiments).where(experiments.c.name == name).values(**changes))
        return self._require(name)

    @writes
    def delete(self, connection: Connection, name: str) -> None:
        """Delete an experiment that has no runs and no logged models, except deleted ones."""
        self._require(name)
        has_runs = select(runs.c.seq).where(runs.c.experiment_seq == experiments.c.seq).exists()
        models_of_it = select(logged_models.c.seq).where(logged_models.c.experiment_seq == experiments.c.seq)
        has_models = models_of_it.where(logged_models.c.deleted_at.is_(None)).exists()
        if connection.execute(select(has_models).where(experiments.c.name == name)).scalar():
            raise UserErrorException(
                f"The experiment {name!r} has logged models and cannot be deleted",
                hint="Archive it to hide it from lists, or delete its models with 'mlflow.delete_logged_model' first.",
            )
        unused = (experiments.c.name == name) & ~has_runs
        seq = connection.execute(select(experiments.c.seq).where(unused)).scalar()
        if seq is not None:
            deleted = select(logged_models.c.seq).where(logged_models.c.experiment_seq == seq)
            delete_logged_models(connection, list(connection.execute(deleted).scalars()))
        if connection.execute(delete(experiments).where(unused)).rowcount == 0:
            raise UserErrorException(
                f"The experiment {name!r} has runs and cannot be deleted",
                hint="Archive it to hide it from lists, or remove its runs with 'trainmaster runs delete' first.",
            )

    @reads
    def list_logged_models(self, connection: Connection, name: str) -> list[str]:
        """The logged models of an experiment, even deleted ones."""
        statement = select(logged_models.c.id).join(experiments, experiments.c.seq == logged_models.c.experiment_seq)
        found = connection.execute(statement.where(experiments.c.name == name).order_by(logged_models.c.seq))
        return list(found.scalars())

    def _require(self, name: str) -> ExperimentRecord:
        found = self.get(name)
        if found is None:
            raise UserErrorException(f"There is no experiment named {name!r}")
        return found


def _record_of(row: tuple[Any, ...]) -> ExperimentRecord:
    identity, name, created_at, archived_at, tags = row
    return ExperimentRecord(identity, name, created_at, archived_at, json.loads(tags) if tags else {})


def _is_in_view(record: ExperimentRecord, view: View) -> bool:
    return view == "all" or (view == "archived") == (record.archived_at is not None)
