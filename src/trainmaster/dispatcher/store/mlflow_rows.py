"""The rows behind MLflow's messages of runs: a page of runs takes three queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Dialect, func, select

from trainmaster.dispatcher.store.points import METRIC_NAME, SYSTEM
from trainmaster.dispatcher.store.schema import arguments, experiments, metric_points, metrics, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, is_one_of, list_value
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.dispatcher.store.values import BOOL, FLOAT, INT
from trainmaster.shared.records import MLFLOW_RUN

_NUMERIC = frozenset({FLOAT, INT, BOOL})

Row = Sequence[Any]


@dataclass(frozen=True)
class MlflowRunRows:
    """Rows by the number of their run."""

    runs: Mapping[int, Row]
    """seq, id, experiment, location, type, state, created, ended, end_ms, archived, name, user, tags, params."""
    metrics: Mapping[int, Sequence[Row]]
    """The last value of each metric: name, number (null for NaN), step, time."""
    arguments: Mapping[int, Mapping[str, str]]
    """The arguments of scripts."""


class MlflowRows(Repository):
    """Reads what MLflow shows of runs."""

    @reads
    def read(self, connection: Connection, seqs: Sequence[int]) -> MlflowRunRows:
        """Everything about these runs but their inputs and outputs."""
        select_runs, select_metrics, select_arguments = _prepare(connection.dialect)
        wanted = list_value(seqs, connection.dialect)
        found = {row[0]: row for row in select_runs.rows(connection, seqs=wanted)}
        last: dict[int, list[Row]] = defaultdict(list)
        for seq, name, number, form, step, time in select_metrics.rows(connection, seqs=wanted):
            if form in _NUMERIC and time is not None:
                last[seq].append((name, number, step, time))
        given: dict[int, dict[str, str]] = defaultdict(dict)
        jobs = [seq for seq, row in found.items() if row[4] != MLFLOW_RUN]
        if jobs:
            for seq, name, text in select_arguments.rows(connection, seqs=list_value(jobs, connection.dialect)):
                given[seq][name] = text
        return MlflowRunRows(found, last, given)


@lru_cache(maxsize=8)
def _prepare(dialect: Dialect) -> tuple[PreparedSelect, PreparedSelect, PreparedSelect]:
    each_run = select(
        runs.c.seq,
        runs.c.id,
        runs.c.experiment_seq,
        experiments.c.artifact_location,
        runs.c.type,
        runs.c.status,
        runs.c.created_at,
        runs.c.ended_at,
        runs.c.end_ms,
        runs.c.archived_at,
        runs.c.display_name,
        runs.c.submitted_by,
        runs.c.tags,
        runs.c.params,
    ).join_from(runs, experiments)
    last_point = (metric_points.c.metric_id == metrics.c.id) & (
        metric_points.c.idx == func.coalesce(metrics.c.last_idx, metrics.c.count - 1)
    )
    each_metric = (
        select(
            metrics.c.run_seq,
            METRIC_NAME,
            metrics.c.last_number,
            metrics.c.last_form,
            metric_points.c.step,
            metric_points.c.time,
        )
        .join_from(metrics, metric_points, last_point)
        .where(metrics.c.kind != SYSTEM)
        .order_by(metrics.c.run_seq, metrics.c.id)
    )
    each_argument = select(arguments.c.run_seq, arguments.c.name, arguments.c.text)
    return (
        PreparedSelect(each_run.where(is_one_of(runs.c.seq, "seqs", dialect))),
        PreparedSelect(each_metric.where(is_one_of(metrics.c.run_seq, "seqs", dialect))),
        PreparedSelect(each_argument.where(is_one_of(arguments.c.run_seq, "seqs", dialect))),
    )
