"""Models that MLflow's clients log: parameters, tags, metrics, state. Their files are in a folder of the workspace."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, insert, select, update

from trainmaster.dispatcher.store.schema import (
    experiments,
    logged_model_labels,
    logged_model_metrics,
    logged_models,
    runs,
)
from trainmaster.dispatcher.store.statements import PreparedSelect, chunks
from trainmaster.dispatcher.store.transactions import Repository, reads, reads_once, writes, writes_lazily
from trainmaster.dispatcher.store.values import clean

UNSPECIFIED, PENDING, READY, FAILED = range(4)
"""The states, by MLflow's numbers."""
STATES = ("UNSPECIFIED", "PENDING", "READY", "FAILED")
"""The names of the states."""
_PARAM, _TAG = 0, 1

_EXPERIMENT = PreparedSelect(
    select(experiments.c.artifact_location, experiments.c.archived_at).where(experiments.c.seq == bindparam("seq"))
)
_MODEL = PreparedSelect(select(logged_models.c.seq).where(logged_models.c.id == bindparam("id")))
_SAID = ("value", "dataset_name", "dataset_digest")
_METRIC = PreparedSelect(
    select(*(logged_model_metrics.c[name] for name in _SAID)).where(
        *(
            logged_model_metrics.c[name] == bindparam(name)
            for name in ("model_seq", "name", "time_ms", "step", "run_seq")
        )
    )
)


@dataclass(frozen=True)
class ModelMetric:
    """A value that was logged of a model."""

    name: str
    value: float
    time_ms: int
    step: int
    run_id: str
    dataset_name: str | None = None
    dataset_digest: str | None = None


@dataclass(frozen=True)
class LoggedModel:
    """A logged model."""

    id: str
    experiment_id: str
    name: str
    created_ms: int
    modified_ms: int
    status: int = PENDING
    type: str | None = None
    source_run_id: str | None = None
    status_message: str | None = None
    location: str = ""
    """Of the experiment; empty if its client gave none."""
    deleted_at: float | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[ModelMetric, ...] = ()


@dataclass(frozen=True)
class ModelExperiment:
    """An experiment that a model is created in."""

    location: str
    is_archived: bool


_COLUMNS = (
    logged_models.c.seq,
    logged_models.c.id,
    logged_models.c.experiment_seq,
    logged_models.c.name,
    logged_models.c.created_ms,
    logged_models.c.modified_ms,
    logged_models.c.status,
    logged_models.c.type,
    logged_models.c.source_run_id,
    logged_models.c.status_message,
    experiments.c.artifact_location,
    logged_models.c.deleted_at,
)


class LoggedModels(Repository):
    """The logged models of a workspace."""

    @reads_once
    def find_experiment(self, connection: Connection, experiment_id: int) -> ModelExperiment | None:
        """The experiment with this number."""
        row = _EXPERIMENT.row(connection, seq=experiment_id)
        return ModelExperiment(row[0], row[1] is not None) if row else None

    @writes
    def create(self, connection: Connection, model: LoggedModel) -> LoggedModel:
        """Add a model with its parameters and tags."""
        values = {
            "id": model.id,
            "experiment_seq": int(model.experiment_id),
            "name": clean(model.name),
            "type": None if model.type is None else clean(model.type),
            "source_run_id": None if model.source_run_id is None else clean(model.source_run_id),
            "status": model.status,
            "status_message": model.status_message,
            "created_ms": model.created_ms,
            "modified_ms": model.modified_ms,
            "deleted_at": model.deleted_at,
        }
        seq = connection.execute(insert(logged_models).values(**values).returning(logged_models.c.seq)).scalar_one()
        _add_labels(connection, seq, _PARAM, model.params)
        _add_labels(connection, seq, _TAG, model.tags)
        return self._require(connection, model.id)

    @reads
    def get(self, connection: Connection, model_id: str, even_deleted: bool = False) -> LoggedModel | None:
        """The model with this id."""
        statement = select_models().where(logged_models.c.id == model_id)
        if not even_deleted:
            statement = statement.where(logged_models.c.deleted_at.is_(None))
        return next(iter(read_models(connection, statement)), None)

    @reads
    def list_made(self, connection: Connection, run_id: str, most: int) -> list[LoggedModel]:
        """The models that a run has logged, newest first."""
        made = (logged_models.c.source_run_id == run_id, logged_models.c.deleted_at.is_(None))
        return read_models(connection, select_models().where(*made).order_by(logged_models.c.seq.desc()).limit(most))

    @writes
    def set_status(self, connection: Connection, model_id: str, status: int, now_ms: int) -> LoggedModel | None:
        """Set the state of a model, even of a deleted one; None if there is no such model."""
        changed = update(logged_models).where(logged_models.c.id == model_id)
        if not connection.execute(changed.values(status=status, modified_ms=now_ms)).rowcount:
            return None
        return self._require(connection, model_id)

    @writes
    def delete(self, connection: Connection, model_id: str, at: float) -> bool:
        """Hide a model; False if there is none. Its row and its files stay until its run is deleted for good."""
        changed = update(logged_models).where(logged_models.c.id == model_id)
        return bool(connection.execute(changed.values(deleted_at=at, modified_ms=int(at * 1000))).rowcount)

    @writes
    def add_params(self, connection: Connection, model_id: str, params: Mapping[str, str]) -> bool | str:
        """Add parameters, all or none. False if there is no such model; the name of one that it already has."""
        seq = _find_seq(connection, model_id)
        if seq is None:
            return False
        known = _read_labels(connection, [seq])[seq, _PARAM]
        taken = next((name for name in params if clean(name) in known), None)
        if taken is not None:
            return taken
        _add_labels(connection, seq, _PARAM, params)
        return True

    @writes
    def set_tags(self, connection: Connection, model_id: str, tags: Mapping[str, str]) -> bool:
        """Set tags; False if there is no such model."""
        seq = _find_seq(connection, model_id)
        if seq is None:
            return False
        for part in chunks([clean(name) for name in tags]):
            connection.execute(delete(logged_model_labels).where(_is_label(seq, _TAG, part)))
        _add_labels(connection, seq, _TAG, tags)
        return True

    @writes
    def delete_tag(self, connection: Connection, model_id: str, name: str) -> bool | None:
        """Delete a tag; False if the model has no such tag, None if there is no such model."""
        seq = _find_seq(connection, model_id)
        if seq is None:
            return None
        return bool(connection.execute(delete(logged_model_labels).where(_is_label(seq, _TAG, [clean(name)]))).rowcount)

    @writes_lazily
    def add_metrics(
        self, connection: Connection, run_seq: int, metrics: Sequence[tuple[str, ModelMetric]]
    ) -> str | None:
        """Add values that a run has logged of models, by the ids of the models: all or none.

        The same value is kept once. Returns why none was added: there is no such model, or it has another value with
        this name, step and time.
        """
        seqs: dict[str, int] = {}
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for model_id, metric in metrics:
            seq = seqs.get(model_id) or _find_seq(connection, model_id)
            if seq is None:
                return f"Logged model with ID '{model_id}' not found."
            seqs[model_id] = seq
            row = _metric_row(seq, run_seq, metric)
            key = (seq, row["name"], metric.time_ms, metric.step)
            known = rows.get(key) or _find_metric(connection, run_seq, *key)
            if known is not None and any(known[name] != row[name] for name in _SAID):
                return (
                    f"The logged model '{model_id}' already has another value of the metric '{metric.name}' at step "
                    f"{metric.step} and time {metric.time_ms}."
                )
            if known is None:
                rows[key] = row
        if rows:
            connection.execute(insert(logged_model_metrics), list(rows.values()))
        return None

    def _require(self, connection: Connection, model_id: str) -> LoggedModel:
        (found,) = read_models(connection, select_models().where(logged_models.c.id == model_id))
        return found


def select_models() -> Select[Any]:
    """A select for `read_models`, without conditions."""
    return select(*_COLUMNS).join_from(logged_models, experiments, logged_models.c.experiment_seq == experiments.c.seq)


def read_models(connection: Connection, statement: Select[Any]) -> list[LoggedModel]:
    """The models that a statement of `select_models` finds, complete, in three queries."""
    rows = connection.execute(statement).all()
    seqs = [row.seq for row in rows]
    labels, metrics = _read_labels(connection, seqs), _read_metrics(connection, seqs)
    return [
        LoggedModel(
            row.id,
            str(row.experiment_seq),
            row.name,
            row.created_ms,
            row.modified_ms,
            row.status,
            row.type,
            row.source_run_id,
            row.status_message,
            row.artifact_location,
            row.deleted_at,
            labels.get((row.seq, _PARAM), {}),
            labels.get((row.seq, _TAG), {}),
            tuple(metrics.get(row.seq, ())),
        )
        for row in rows
    ]


def has_param(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a model has a parameter whose `logged_model_labels.value` fulfils a condition."""
    return _has_label(_PARAM, name, condition)


def has_tag(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a model has a tag whose `logged_model_labels.value` fulfils a condition."""
    return _has_label(_TAG, name, condition)


def _has_label(kind: int, name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    labels = logged_model_labels.c
    found = select(labels.model_seq).where(labels.model_seq == logged_models.c.seq, labels.kind == kind)
    return found.where(labels.name == clean(name), condition).exists()


def _find_seq(connection: Connection, model_id: str) -> int | None:
    row = _MODEL.row(connection, id=clean(model_id))
    return row[0] if row else None


def _is_label(seq: int, kind: int, names: Sequence[str]) -> ColumnElement[bool]:
    labels = logged_model_labels.c
    return (labels.model_seq == seq) & (labels.kind == kind) & labels.name.in_(names)


def _add_labels(connection: Connection, seq: int, kind: int, labels: Mapping[str, str]) -> None:
    cleaned = {clean(name): clean(value) for name, value in labels.items()}
    rows = [{"model_seq": seq, "kind": kind, "name": name, "value": value} for name, value in cleaned.items()]
    if rows:
        connection.execute(insert(logged_model_labels), rows)


def _read_labels(connection: Connection, seqs: Sequence[int]) -> dict[tuple[int, int], dict[str, str]]:
    """By model and kind, in the order of their names."""
    found: dict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    labels = logged_model_labels.c
    for part in chunks(seqs):
        statement = select(labels.model_seq, labels.kind, labels.name, labels.value).where(labels.model_seq.in_(part))
        order = (labels.model_seq, labels.kind, labels.name)
        for seq, kind, name, value in connection.execute(statement.order_by(*order)):
            found[seq, kind][name] = value
    return found


def _read_metrics(connection: Connection, seqs: Sequence[int]) -> dict[int, list[ModelMetric]]:
    """By model, in the order in which they were logged."""
    found: dict[int, list[ModelMetric]] = defaultdict(list)
    metrics = logged_model_metrics.c
    columns = (metrics.model_seq, metrics.name, metrics.value, metrics.time_ms, metrics.step, runs.c.id)
    said = (metrics.dataset_name, metrics.dataset_digest)
    for part in chunks(seqs):
        statement = select(*columns, *said).join(runs, runs.c.seq == metrics.run_seq).where(metrics.model_seq.in_(part))
        for seq, name, value, *rest in connection.execute(statement.order_by(metrics.seq)):
            found[seq].append(ModelMetric(name, math.nan if value is None else value, *rest))
    return found


def _metric_row(seq: int, run_seq: int, metric: ModelMetric) -> dict[str, Any]:
    return {
        "model_seq": seq,
        "name": clean(metric.name),
        "time_ms": metric.time_ms,
        "step": metric.step,
        "run_seq": run_seq,
        "value": None if math.isnan(metric.value) else metric.value,
        "dataset_name": None if metric.dataset_name is None else clean(metric.dataset_name),
        "dataset_digest": None if metric.dataset_digest is None else clean(metric.dataset_digest),
    }


def _find_metric(
    connection: Connection, run_seq: int, seq: int, name: str, time_ms: int, step: int
) -> Mapping[str, Any] | None:
    row = _METRIC.row(connection, model_seq=seq, name=name, time_ms=time_ms, step=step, run_seq=run_seq)
    return None if row is None else dict(zip(_SAID, row, strict=True))
