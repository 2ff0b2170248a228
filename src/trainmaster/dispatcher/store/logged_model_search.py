"""Finding logged models by MLflow's filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Cast,
    ColumnElement,
    Connection,
    Dialect,
    ScalarSelect,
    Select,
    Text,
    and_,
    case,
    cast,
    or_,
    select,
)

from trainmaster.dispatcher.store.clauses import compare_number, compare_text
from trainmaster.dispatcher.store.logged_models import (
    STATES,
    LoggedModel,
    has_param,
    has_tag,
    read_models,
    select_models,
)
from trainmaster.dispatcher.store.schema import logged_model_labels, logged_model_metrics, logged_models, runs
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.filters.clauses import Clause

_TEXTS = {
    "name": logged_models.c.name,
    "model_id": logged_models.c.id,
    "model_type": logged_models.c.type,
    "source_run_id": logged_models.c.source_run_id,
    "status_message": logged_models.c.status_message,
}
_NUMBERS = {
    "creation_timestamp": logged_models.c.created_ms,
    "last_updated_timestamp": logged_models.c.modified_ms,
}
_WHOLE = {"status": logged_models.c.status, "experiment_id": logged_models.c.experiment_seq}

SORTABLE = frozenset({*_TEXTS, *_NUMBERS, *_WHOLE})
"""The attributes that models can be sorted by."""


@dataclass(frozen=True)
class DatasetFilter:
    """The dataset that a metric was computed on; None is any."""

    name: str | None = None
    digest: str | None = None


@dataclass(frozen=True)
class ModelOrder:
    """What models are sorted by: an attribute, or the newest value of a metric."""

    key: str
    is_metric: bool = False
    ascending: bool = True
    dataset: DatasetFilter = DatasetFilter()


@dataclass(frozen=True)
class ModelQuery:
    """Which models are wanted, and in which order."""

    experiment_ids: Sequence[int]
    clauses: Sequence[Clause] = ()
    datasets: Sequence[DatasetFilter] = ()
    """Metrics of the filter have to be of one of them. Without metrics in the filter, any metric has to be."""
    orders: Sequence[ModelOrder] = ()
    offset: int = 0
    limit: int = 100


class LoggedModelSearch(Repository):
    """Finds logged models."""

    @reads
    def find(self, connection: Connection, query: ModelQuery) -> list[LoggedModel]:
        """The models that fulfil a query; deleted ones never do."""
        statement = select_models().where(
            logged_models.c.experiment_seq.in_(list(query.experiment_ids)),
            logged_models.c.deleted_at.is_(None),
            *(_make_condition(clause, query.datasets, connection.dialect) for clause in query.clauses),
        )
        if query.datasets and not any(clause.entity == "metric" for clause in query.clauses):
            statement = statement.where(_has_metric(query.datasets))
        statement = statement.order_by(*_make_order(query.orders)).offset(query.offset).limit(query.limit)
        return read_models(connection, statement)


def _make_condition(clause: Clause, datasets: Sequence[DatasetFilter], dialect: Dialect) -> ColumnElement[bool]:
    match clause.entity:
        case "metric":
            is_wanted = compare_number(logged_model_metrics.c.value, clause)
            return _has_metric(datasets, logged_model_metrics.c.name == clean(clause.key), is_wanted)
        case "parameter":
            return has_param(clause.key, compare_text(logged_model_labels.c.value, clause, dialect))
        case "tag":
            return has_tag(clause.key, compare_text(logged_model_labels.c.value, clause, dialect))
    if clause.key in _NUMBERS:
        return compare_number(_NUMBERS[clause.key], clause)
    if clause.key == "status" and not str(clause.value).isdecimal():
        return compare_text(_name_status(), clause, dialect)
    column = _show(clause.key) if clause.key in _WHOLE else _TEXTS[clause.key]
    return compare_text(column, clause, dialect)


def _name_status() -> ColumnElement[str]:
    return case(dict(enumerate(STATES)), value=logged_models.c.status)


def _show(key: str) -> Cast[str]:
    return cast(_WHOLE[key], Text)


def _has_metric(datasets: Sequence[DatasetFilter], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    metrics = logged_model_metrics.c
    found = select(metrics.seq).where(metrics.model_seq == logged_models.c.seq, *conditions)
    if datasets:
        found = found.where(or_(*map(_is_of, datasets)))
    return found.exists()


def _is_of(dataset: DatasetFilter) -> ColumnElement[bool]:
    metrics = logged_model_metrics.c
    wanted = ((metrics.dataset_name, dataset.name), (metrics.dataset_digest, dataset.digest))
    return and_(True, *(column == clean(value) for column, value in wanted if value is not None))


def _make_order(orders: Sequence[ModelOrder]) -> list[ColumnElement[Any]]:
    """Models without a value come last; in the end the newest first."""
    found: list[ColumnElement[Any]] = []
    for order in orders:
        value: ColumnElement[Any]
        if order.is_metric:
            value = _select_newest(order).label(f"metric{len(found)}")
        else:
            value = {**_TEXTS, **_NUMBERS, **_WHOLE}[order.key]
        found.append((value.asc() if order.ascending else value.desc()).nulls_last())
    keys = {order.key for order in orders if not order.is_metric}
    if "creation_timestamp" not in keys:
        found.append(logged_models.c.created_ms.desc())
    if "model_id" not in keys:
        found.append(logged_models.c.id.asc())
    return found


def _select_newest(order: ModelOrder) -> ScalarSelect[float]:
    metrics = logged_model_metrics.c
    values: Select[tuple[float]] = (
        select(metrics.value)
        .join(runs, runs.c.seq == metrics.run_seq)
        .where(metrics.model_seq == logged_models.c.seq, metrics.name == clean(order.key), _is_of(order.dataset))
        .order_by(metrics.time_ms.desc(), metrics.step.desc(), runs.c.id.asc())
        .limit(1)
    )
    return values.scalar_subquery()
