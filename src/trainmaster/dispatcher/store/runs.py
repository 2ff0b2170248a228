"""Runs: inserting, reading and moving them through their states."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, false, func, or_, select, update

from trainmaster.dispatcher.store import experiments as experiment_rows
from trainmaster.dispatcher.store import labels
from trainmaster.dispatcher.store.rows import columns_of, insertion_of, runs_of, select_whole_runs
from trainmaster.dispatcher.store.schema import experiments, run_specs, runs
from trainmaster.dispatcher.store.statements import PreparedChange, PreparedInsert, PreparedSelect, chunks
from trainmaster.dispatcher.store.values import clean, dump_collection
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.shared.records import SUCCESSORS, TERMINAL, RunRecord, Status

_MOST_WARNINGS = 100

_BY_ID = PreparedSelect(select_whole_runs().where(runs.c.id == bindparam("id")))
_SEQ = PreparedSelect(select(runs.c.seq).where(runs.c.id == bindparam("id")))
_WARNINGS = PreparedSelect(select(runs.c.warnings).where(runs.c.seq == bindparam("seq")))
_EXPERIMENT = PreparedSelect(
    select(experiments.c.seq, experiments.c.run_count).where(experiments.c.name == bindparam("name"))
)
_ACTIVE = PreparedSelect(select_whole_runs().where(runs.c.ended_at.is_(None)).order_by(runs.c.seq))
_COUNT = PreparedChange(
    update(experiments).where(experiments.c.name == bindparam("which")).values(run_count=experiments.c.run_count + 1)
)
_INSERTED = tuple(column.name for column in runs.columns if column.name != "seq")
_INSERT = PreparedInsert(runs.insert(), _INSERTED)
_INSERT_SPEC = PreparedInsert(run_specs.insert(), ("run_seq", "spec"))
_ACTIVE_CHILD = PreparedSelect(
    select(runs.c.seq).where(runs.c.parent_id == bindparam("id"), runs.c.ended_at.is_(None)).limit(1)
)
_PREDECESSORS = {
    status: frozenset(before for before, after in SUCCESSORS.items() if status in after) for status in Status
}


def get(connection: Connection, run_id: str) -> RunRecord | None:
    """The run of this id."""
    return next(iter(runs_of(_BY_ID.rows(connection, id=run_id))), None)


def get_many(connection: Connection, run_ids: Sequence[str]) -> list[RunRecord]:
    """The runs of these ids in their order; one that is not there is left out."""
    found: dict[str, RunRecord] = {}
    for part in chunks(list(dict.fromkeys(run_ids))):
        rows = connection.execute(select_whole_runs().where(runs.c.id.in_(part))).all()
        found.update((run.id, run) for run in runs_of(rows))
    return [found[run_id] for run_id in run_ids if run_id in found]


def active(connection: Connection) -> list[RunRecord]:
    """All runs that have not ended, oldest first."""
    return runs_of(_ACTIVE.rows(connection))


def has_active_children(connection: Connection, run_id: str) -> bool:
    """Whether a child of this run has not ended. One that has ended has no active children itself."""
    return _ACTIVE_CHILD.row(connection, id=run_id) is not None


def seq_of(connection: Connection, run_id: str) -> int:
    """The row number of a run that must be there."""
    row = _SEQ.row(connection, id=run_id)
    if row is None:
        raise RunNotFoundException(f"There is no run {run_id!r}", hint="Check the id and the workspace.")
    return int(row[0])


def add(connection: Connection, run: RunRecord) -> RunRecord:
    """Insert `run` with its numbers; a run that is there already is left as it is, because clients retry."""
    present = get(connection, run.id)
    if present is not None:
        return present
    if run.parent_id is not None and _SEQ.row(connection, id=run.parent_id) is None:
        raise RunNotFoundException(f"There is no run {run.parent_id!r} to be the parent of {run.id!r}")
    return add_new(connection, run)


def add_new(connection: Connection, run: RunRecord) -> RunRecord:
    """The same for a run that is certainly not there, of a parent that is."""
    run = replace(run, tags=labels.tags_of(run.tags), properties=labels.properties_of(run.properties))
    if run.status in TERMINAL and run.ended_at is None:
        run = replace(run, ended_at=run.created_at)
    experiment, number = _next_number(connection, run)
    columns = {**insertion_of(run), "experiment_seq": experiment, "number": number}
    _INSERT.run(connection, [tuple(columns[name] for name in _INSERTED)])
    seq = seq_of(connection, run.id)
    if run.spec:
        _INSERT_SPEC.run(connection, [(seq, run.spec)])
    labels.index(connection, seq, labels.TAG, run.tags)
    labels.index(connection, seq, labels.PROPERTY, run.properties)
    return replace(run, seq=seq, number=number)


def move(
    connection: Connection,
    run_id: str,
    to: Status,
    expect: Collection[Status] | None,
    at: float,
    changes: Mapping[str, Any],
) -> RunRecord | None:
    """Compare and set: the run in its new state, or None when it was not in a state to go there from."""
    allowed = _PREDECESSORS[to] & frozenset(expect) if expect is not None else _PREDECESSORS[to]
    columns = columns_of(changes)
    if to is Status.RUNNING:
        columns.setdefault("started_at", at)
    if to in TERMINAL:
        columns["ended_at"] = columns.get("ended_at") or at
        columns.setdefault("waiting_for", "")
    columns["status"] = str(to)
    values = {f"new_{name}": value for name, value in columns.items()}
    moved = _guarded(frozenset(columns), allowed, to is Status.RUNNING).run(connection, which=run_id, **values)
    record = get(connection, run_id)
    if record is None:
        seq_of(connection, run_id)
    return record if moved else None


@lru_cache(maxsize=256)
def _guarded(columns: frozenset[str], allowed: frozenset[Status], begins: bool) -> PreparedChange:
    """An update of these columns of a run in one of these states; when it `begins` is told once."""
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in sorted(columns)}
    if begins:
        values["started_at"] = func.coalesce(runs.c.started_at, values["started_at"])
    if "ended_at" in columns:
        begun = bindparam("new_started_at") if "started_at" in columns else runs.c.started_at
        values["ended_at"] = _not_before(func.coalesce(begun, runs.c.created_at), values["ended_at"])
    states = sorted(map(str, allowed))
    return PreparedChange(
        update(runs)
        .where(runs.c.id == bindparam("which"), or_(false(), *(runs.c.status == state for state in states)))
        .values(**values)
    )


def _not_before(earliest: ColumnElement[float], time: ColumnElement[float]) -> ColumnElement[float]:
    """The time, unless a clock that was set back makes it earlier than what came before it."""
    return case((time < earliest, earliest), else_=time)


def change(connection: Connection, run_id: str, changes: Mapping[str, Any]) -> RunRecord:
    """Set fields that do not belong to the state."""
    seq = seq_of(connection, run_id)
    if "ended_at" in changes:
        raise UserErrorException("A run's ended_at is set when it ends")
    columns = columns_of(changes)
    if columns:
        connection.execute(update(runs).where(runs.c.seq == seq).values(**columns))
    record = get(connection, run_id)
    assert record is not None
    return record


def add_warnings(connection: Connection, seq: int, texts: Iterable[str], instead_of: str = "") -> None:
    """Append warnings that the run does not have yet; those that begin with `instead_of` make room."""
    row = _WARNINGS.row(connection, seq=seq)
    before: list[str] = json.loads(row[0]) if row and row[0] else []
    kept = [text for text in before if not (instead_of and text.startswith(instead_of))]
    # A script that does a thing wrong in each step must not fill the row.
    after = list(dict.fromkeys([*kept, *map(clean, texts)]))[:_MOST_WARNINGS]
    if after != before:
        connection.execute(update(runs).where(runs.c.seq == seq).values(warnings=dump_collection(after)))


def _next_number(connection: Connection, run: RunRecord) -> tuple[int, int]:
    """The experiment's row number and the run's ordinal in it, counted in the experiment's row."""
    if not _COUNT.run(connection, which=run.experiment):
        experiment_rows.ensure(connection, run.experiment, run.created_at)
        _COUNT.run(connection, which=run.experiment)
    row = _EXPERIMENT.row(connection, name=run.experiment)
    assert row is not None
    return int(row[0]), int(row[1])
