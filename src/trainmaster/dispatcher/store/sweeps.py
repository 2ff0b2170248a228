"""Sweeps and their trials: rows beside those of their runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, literal_column, select, update

from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.runs import Runs
from trainmaster.dispatcher.store.schema import metric_points, metrics, runs, sweeps, trials
from trainmaster.dispatcher.store.statements import PreparedChange, PreparedInsert, PreparedSelect
from trainmaster.dispatcher.store.transactions import Repository, reads, reads_once, writes, writes_lazily
from trainmaster.dispatcher.store.values import BOOL, FLOAT, INT, clean, name_index
from trainmaster.shared.records import RunRecord, Status, SweepRecord, TrialRecord

_SWEEP = PreparedSelect(
    select(sweeps.c.spec, sweeps.c.ending_status, sweeps.c.ending_reason)
    .join_from(sweeps, runs, sweeps.c.run_seq == runs.c.seq)
    .where(runs.c.id == bindparam("id"))
)
_TRIALS_OF_SWEEP = (
    select(
        trials.c.number,
        runs.c.id,
        trials.c.parameters,
        trials.c.continues,
        trials.c.judged,
        trials.c.cut,
        runs.c.status,
        runs.c.created_at,
        runs.c.started_at,
        runs.c.ended_at,
        runs.c.error,
    )
    .join_from(trials, runs, trials.c.run_seq == runs.c.seq)
    .where(trials.c.sweep_seq == bindparam("sweep_seq"))
)
_TRIALS = PreparedSelect(_TRIALS_OF_SWEEP.order_by(trials.c.number))
# Without a parameter: PostgreSQL does not recognise two parameters of the same value as the same expression.
_IS_CUT = trials.c.cut != literal_column("''")
_COUNTS = PreparedSelect(
    select(runs.c.status, _IS_CUT, func.count())
    .join_from(trials, runs, trials.c.run_seq == runs.c.seq)
    .where(trials.c.sweep_seq == bindparam("sweep_seq"))
    .group_by(runs.c.status, _IS_CUT)
)
_WITH_METRIC = _TRIALS_OF_SWEEP.join(metrics, metrics.c.run_seq == trials.c.run_seq).where(
    metrics.c.name == bindparam("name"), metrics.c.kind == "scalar", metrics.c.maximum.is_not(None)
)
_LARGEST = PreparedSelect(_WITH_METRIC.order_by(metrics.c.maximum.desc(), trials.c.number).limit(1))
_SMALLEST = PreparedSelect(_WITH_METRIC.order_by(metrics.c.minimum, trials.c.number).limit(1))
_TRIAL_OF_RUN = PreparedSelect(
    select(trials.c.parameters)
    .join_from(trials, runs, trials.c.run_seq == runs.c.seq)
    .where(runs.c.id == bindparam("id"))
)
_RUN_OF_TRIAL = PreparedSelect(
    select(runs.c.id)
    .join_from(trials, runs, trials.c.run_seq == runs.c.seq)
    .where(trials.c.sweep_seq == bindparam("sweep_seq"), trials.c.number == bindparam("number"))
)
_INSERT_TRIAL = PreparedInsert(
    trials.insert(), ("sweep_seq", "number", "run_seq", "parameters", "continues", "judged", "cut")
)
_THIS = (trials.c.sweep_seq == bindparam("sweep")) & (trials.c.number == bindparam("which"))
_JUDGE = PreparedChange(update(trials).where(_THIS).values(judged=bindparam("new_judged")))
_CUT = PreparedChange(update(trials).where(_THIS).values(cut=bindparam("new_cut")))
_POINTS = (metric_points.c.idx, metric_points.c.number, metric_points.c.form)
_SCALAR_POINTS = (metrics.c.id == metric_points.c.metric_id) & (metrics.c.kind == "scalar")
_NEW_NUMBERS = PreparedSelect(
    select(*_POINTS)
    .join_from(metrics, metric_points, _SCALAR_POINTS)
    .join(runs, runs.c.seq == metrics.c.run_seq)
    .where(runs.c.id == bindparam("id"), metrics.c.name == bindparam("name"))
    .where(metric_points.c.idx >= bindparam("first"))
    .order_by(metric_points.c.idx)
)
_ALL_NUMBERS = PreparedSelect(
    select(trials.c.number, *_POINTS)
    .join_from(trials, metrics, metrics.c.run_seq == trials.c.run_seq)
    .join(metric_points, _SCALAR_POINTS)
    .where(trials.c.sweep_seq == bindparam("sweep_seq"), metrics.c.name == bindparam("name"))
    .order_by(trials.c.number, metric_points.c.idx)
)
_NUMBERS = frozenset({FLOAT, INT, BOOL})

Numbers = tuple[int, tuple[float, ...]]
"""The index after the last point, and the values of the points that are numbers."""


class Sweeps(Repository):
    """The sweeps of a workspace and their trials."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = Runs(database)

    @writes
    def add(self, connection: Connection, run: RunRecord, spec: str) -> RunRecord:
        """Add the run of a sweep with the sweep's description; a sweep that is there already stays as it is."""
        kept = self._runs.add(run)
        if _SWEEP.row(connection, id=kept.id) is None:
            values = {"run_seq": kept.seq, "spec": spec, "ending_status": "", "ending_reason": ""}
            connection.execute(insert(sweeps), values)
        return kept

    @reads
    def get(self, connection: Connection, run_id: str) -> SweepRecord | None:
        """The sweep of the run with this id; None if the run is not a sweep."""
        row = _SWEEP.row(connection, id=run_id)
        return None if row is None else SweepRecord(*row)

    @writes
    def set_ending(self, connection: Connection, run_id: str, status: Status, reason: str) -> None:
        """Decide how a sweep ends."""
        values = {"ending_status": str(status), "ending_reason": clean(reason)}
        connection.execute(update(sweeps).where(sweeps.c.run_seq == self._runs.get_seq(run_id)).values(**values))

    @reads
    def list_trials(self, connection: Connection, run_id: str) -> list[TrialRecord]:
        """All trials of a sweep, by number."""
        return [_trial_of(row) for row in _TRIALS.rows(connection, sweep_seq=self._runs.get_seq(run_id))]

    @reads
    def count_trials(self, connection: Connection, run_id: str) -> dict[tuple[Status, bool], int]:
        """The number of trials of a sweep by their state and whether the sweep's policy cut them."""
        rows = _COUNTS.rows(connection, sweep_seq=self._runs.get_seq(run_id))
        return {(Status(status), bool(cut)): count for status, cut, count in rows}

    @reads
    def find_best_trial(self, connection: Connection, run_id: str, metric: str, *, largest: bool) -> TrialRecord | None:
        """The trial with the largest or smallest number in a metric (the first of equal ones); None without any."""
        chosen = _LARGEST if largest else _SMALLEST
        row = chosen.row(connection, sweep_seq=self._runs.get_seq(run_id), name=name_index(metric))
        return None if row is None else _trial_of(row)

    @reads_once
    def get_parameters(self, connection: Connection, run_id: str) -> dict[str, Any] | None:
        """The parameters that were sampled for a run; None if it is not a trial."""
        row = _TRIAL_OF_RUN.row(connection, id=run_id)
        return None if row is None else json.loads(row[0])

    @writes_lazily
    def add_trials(
        self, connection: Connection, sweep_id: str, new: Sequence[tuple[TrialRecord, RunRecord]]
    ) -> list[RunRecord]:
        """Add trials with their runs, all or none. After a power cut the sweep may have to add the same again."""
        sweep_seq = self._runs.get_seq(sweep_id)
        kept, rows = [], []
        for trial, run in new:
            record = self._runs.add_new(run)
            kept.append(record)
            parameters = json.dumps(dict(trial.parameters))
            rows.append((sweep_seq, trial.number, record.seq, parameters, trial.continues, 0, ""))
        _INSERT_TRIAL.run(connection, rows)
        return kept

    @writes
    def judge_trials(
        self, connection: Connection, sweep_id: str, decided: Sequence[tuple[int, int, str]], at: float
    ) -> list[RunRecord]:
        """Keep what a policy decided: number of the trial, interval, and the reason if the trial is to end.

        Return the runs that are CancelRequested now. A trial that ended meanwhile was not cut.
        """
        sweep_seq = self._runs.get_seq(sweep_id)
        ending: list[RunRecord] = []
        for number, interval, reason in decided:
            moved = None
            if reason:
                row = _RUN_OF_TRIAL.row(connection, sweep_seq=sweep_seq, number=number)
                assert row is not None
                moved = self._runs.move(row[0], Status.CANCEL_REQUESTED, at=at)
            _JUDGE.run(connection, sweep=sweep_seq, which=number, new_judged=interval)
            if moved is not None:
                ending.append(moved)
                _CUT.run(connection, sweep=sweep_seq, which=number, new_cut=clean(reason))
        return ending

    @reads_once
    def read_numbers(self, connection: Connection, run_id: str, name: str, first: int = 0) -> Numbers:
        """The points of a trial's metric from the `first` on."""
        return _numbers_of(first, _NEW_NUMBERS.rows(connection, id=run_id, name=name_index(name), first=first))

    @reads
    def read_numbers_of_trials(self, connection: Connection, sweep_id: str, name: str) -> dict[int, Numbers]:
        """The points of a metric of all trials that have any, by the trial's number."""
        rows = _ALL_NUMBERS.rows(connection, sweep_seq=self._runs.get_seq(sweep_id), name=name_index(name))
        found: dict[int, list[tuple[Any, ...]]] = {}
        for number, *point in rows:
            found.setdefault(number, []).append(tuple(point))
        return {number: _numbers_of(0, points) for number, points in found.items()}


def _trial_of(row: Sequence[Any]) -> TrialRecord:
    number, trial_id, parameters, continues, judged, cut, status, created_at, started_at, ended_at, error = row
    return TrialRecord(
        number=number,
        run_id=trial_id,
        parameters=json.loads(parameters),
        continues=continues,
        judged=judged,
        cut=cut,
        status=Status(status),
        created_at=created_at,
        started_at=started_at,
        ended_at=ended_at,
        error=json.loads(error)["message"] if error else "",
    )


def _numbers_of(first: int, points: Sequence[tuple[Any, ...]]) -> Numbers:
    end = points[-1][0] + 1 if points else first
    found = (math.nan if number is None else float(number) for _, number, form in points if form in _NUMBERS)
    return end, tuple(found)
