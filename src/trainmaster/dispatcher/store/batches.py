"""What a client of MLflow logs in one request, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from trainmaster.dispatcher.store import points
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.logged_models import LoggedModels, ModelMetric
from trainmaster.dispatcher.store.mlflow_runs import MlflowRuns, RunHead
from trainmaster.dispatcher.store.ordered_points import Point
from trainmaster.dispatcher.store.transactions import Repository, writes_lazily


@dataclass(frozen=True)
class Batch:
    """Everything that is logged at once."""

    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[tuple[str, Point]] = ()
    """By the name of the metric."""
    model_metrics: Sequence[tuple[str, ModelMetric]] = ()
    """By the id of the logged model."""


class ChangedParamsError(Exception):
    """Parameters have another value already: their names, the values that they have, and the new ones."""

    def __init__(self, params: Sequence[tuple[str, str, str]]) -> None:
        super().__init__()
        self.params = params


class RefusedMetricError(Exception):
    """A value of a logged model cannot be kept; the text says why."""


class Batches(Repository):
    """Batches of parameters, tags and metrics."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = MlflowRuns(database)
        self._models = LoggedModels(database)

    @writes_lazily
    def log(self, connection: Connection, head: RunHead, batch: Batch) -> None:
        """Log a batch, all of it or nothing. Raises ChangedParamsError or RefusedMetricError."""
        conflicts = self._runs.log(head, batch.params, batch.tags)
        if conflicts:
            raise ChangedParamsError(conflicts)
        if batch.model_metrics:
            refused = self._models.add_metrics(head.seq, batch.model_metrics)
            if refused is not None:
                raise RefusedMetricError(refused)
        metrics: dict[str, points.Batch] = {}
        for name, point in batch.points:
            if name not in metrics:
                metrics[name] = points.Batch("scalar", is_ordered=True)
            metrics[name].points.append(point)
        points.append(connection, head.seq, metrics, None)
