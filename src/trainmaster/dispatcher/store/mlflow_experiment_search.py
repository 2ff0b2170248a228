"""Searching experiments as MLflow's clients do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Dialect, String, and_, cast, exists, false, func, select, true
from sqlalchemy.dialects.postgresql import JSONB

from trainmaster.dispatcher.store.clauses import Predicate, compare_milliseconds, compare_text
from trainmaster.dispatcher.store.mlflow_experiments import EXPERIMENT_COLUMNS, MlflowExperiment, experiment_of
from trainmaster.dispatcher.store.mlflow_search import View
from trainmaster.dispatcher.store.schema import experiments
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.filters.clauses import Clause, SortKey

_MODIFIED_AT = func.coalesce(experiments.c.modified_at, experiments.c.created_at)


@dataclass(frozen=True)
class ExperimentQuery:
    """Which experiments to find, and in which order."""

    clauses: tuple[Clause, ...]
    order: tuple[SortKey, ...]
    view: View
    offset: int
    limit: int


class MlflowExperimentSearch(Repository):
    """Finds experiments for MLflow's clients."""

    @reads
    def find(self, connection: Connection, query: ExperimentQuery) -> list[MlflowExperiment]:
        """The experiments of a page."""
        dialect = connection.dialect
        order = [_turn(_find_value(key.key, dialect), key.descending) for key in query.order]
        if not any(key.key == "experiment_id" for key in query.order):
            order.append(experiments.c.seq.desc())
        matches = and_(_test_view(query.view), *(_compile(clause, dialect) for clause in query.clauses))
        rows = select(*EXPERIMENT_COLUMNS).where(matches).order_by(*order).offset(query.offset).limit(query.limit)
        return [experiment_of(row) for row in connection.execute(rows)]


def _turn(value: ColumnElement[Any], descending: bool) -> ColumnElement[Any]:
    return value.desc() if descending else value.asc()


def _find_value(key: str, dialect: Dialect) -> ColumnElement[Any]:
    match key:
        case "name":
            return experiments.c.name.collate("C") if dialect.name == "postgresql" else experiments.c.name
        case "experiment_id":
            return experiments.c.seq
        case "creation_time":
            return experiments.c.created_at
        case _:
            return _MODIFIED_AT


def _test_view(view: View) -> Predicate:
    match view:
        case "active":
            return experiments.c.archived_at.is_(None)
        case "deleted":
            return experiments.c.archived_at.is_not(None)
        case _:
            return true()


def _compile(clause: Clause, dialect: Dialect) -> Predicate:
    if clause.entity == "tag":
        return _compile_tag(clause, dialect)
    match clause.key:
        case "name":
            return compare_text(experiments.c.name, clause, dialect)
        case "experiment_id":
            return _compare_ids(clause)
        case _:
            return compare_milliseconds(_find_value(clause.key, dialect), clause)


def _compare_ids(clause: Clause) -> Predicate:
    given = clause.value if isinstance(clause.value, tuple) else (str(clause.value),)
    wanted = [number for number in map(int, given) if abs(number) < 2**63]
    is_one = experiments.c.seq.in_(wanted) if wanted else false()
    return is_one if clause.comparator in ("=", "IN") else ~is_one


def _compile_tag(clause: Clause, dialect: Dialect) -> Predicate:
    """Experiments are few: their tags have no index."""
    tags = func.nullif(experiments.c.tags, "")
    if dialect.name == "postgresql":
        members = func.jsonb_each_text(cast(tags, JSONB)).table_valued("key", "value")
    else:
        members = func.json_each(tags).table_valued("key", "value")
    mine = select(members.c.key).select_from(members).where(members.c.key == clean(clause.key)).correlate(experiments)
    match clause.comparator:
        case "IS NULL":
            return ~exists(mine)
        case "IS NOT NULL":
            return exists(mine)
        case _:
            return exists(mine.where(compare_text(cast(members.c.value, String), clause, dialect)))
