"""The runs and logged models that have the files of registered models."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from trainmaster.dispatcher.store.schema import experiments, logged_models, runs
from trainmaster.dispatcher.store.transactions import Repository, reads


@dataclass(frozen=True)
class ModelOwner:
    """A run or a logged model."""

    experiment_id: str
    location: str
    """Of the experiment's files; empty if its client gave none."""
    run_id: str
    """Of a logged model: the run that made it, which need not exist."""


class ModelOwners(Repository):
    """Finds the owners of files."""

    @reads
    def find_run(self, connection: Connection, run_id: str) -> ModelOwner | None:
        """A run, archived or not."""
        columns = select(experiments.c.seq, experiments.c.artifact_location).join_from(runs, experiments)
        row = connection.execute(columns.where(runs.c.id == run_id)).first()
        return ModelOwner(str(row[0]), row[1], run_id) if row else None

    @reads
    def find_logged_model(self, connection: Connection, model_id: str) -> ModelOwner | None:
        """A logged model that has not been deleted."""
        columns = select(experiments.c.seq, experiments.c.artifact_location, logged_models.c.source_run_id)
        chosen = columns.join_from(logged_models, experiments).where(
            logged_models.c.id == model_id, logged_models.c.deleted_at.is_(None)
        )
        row = connection.execute(chosen).first()
        return ModelOwner(str(row[0]), row[1], row[2] or "") if row else None

    @reads
    def find_logged_model_of_run(self, connection: Connection, run_id: str, name: str) -> str | None:
        """The id of the newest logged model with this name that a run has made."""
        chosen = select(logged_models.c.id).where(
            logged_models.c.source_run_id == run_id, logged_models.c.name == name, logged_models.c.deleted_at.is_(None)
        )
        found: str | None = connection.execute(chosen.order_by(logged_models.c.seq.desc()).limit(1)).scalar()
        return found
