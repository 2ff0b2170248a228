"""Runs: adding, reading and moving them through their states."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, false, func, or_, select, update

from trainmaster.dispatcher.store import arguments, labels, listing
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.experiments import Experiments
from trainmaster.dispatcher.store.rows import columns_of, insertion_of, runs_of, select_whole_runs
from trainmaster.dispatcher.store.schema import experiments, run_specs, runs
from trainmaster.dispatcher.store.statements import PreparedChange, PreparedInsert, PreparedSelect, chunks
from trainmaster.dispatcher.store.transactions import Repository, reads, reads_once, writes
from trainmaster.dispatcher.store.values import clean, dump_collection
from trainmaster.job.errors import RunNotFoundException, UserErrorException
from trainmaster.shared.records import SUCCESSORS, TERMINAL, NodeUse, RunQuery, RunRecord, Status

_MOST_WARNINGS = 100
# Older and further runs hardly count for the shares of users.
_USE_SECONDS = 28 * 86400
_MOST_USES = 20_000

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


def no_such_run(run_id: str) -> RunNotFoundException:
    """The error for an id that no run has."""
    return RunNotFoundException(f"There is no run {run_id!r}", hint="Check the id and the workspace.")


class Runs(Repository):
    """The runs of a workspace."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._experiments = Experiments(database)

    @reads_once
    def get(self, connection: Connection, run_id: str) -> RunRecord | None:
        """The run with this id."""
        return next(iter(runs_of(_BY_ID.rows(connection, id=run_id))), None)

    @reads
    def get_many(self, connection: Connection, run_ids: Sequence[str]) -> list[RunRecord]:
        """The runs with these ids, in their order; unknown ids are left out."""
        found: dict[str, RunRecord] = {}
        for part in chunks(list(dict.fromkeys(run_ids))):
            rows = connection.execute(select_whole_runs().where(runs.c.id.in_(part))).all()
            found.update((run.id, run) for run in runs_of(rows))
        return [found[run_id] for run_id in run_ids if run_id in found]

    @reads_once
    def get_seq(self, connection: Connection, run_id: str) -> int:
        """The row number of a run; an error if there is no such run."""
        row = _SEQ.row(connection, id=run_id)
        if row is None:
            raise no_such_run(run_id)
        return int(row[0])

    @reads_once
    def find(self, connection: Connection, query: RunQuery) -> list[RunRecord]:
        """A page of runs, newest first, without `spec`. The seq of its last run as `before_seq` gives the next page."""
        return listing.find(connection, query)

    @reads_once
    def list_active(self, connection: Connection) -> list[RunRecord]:
        """All runs that have not ended, oldest first."""
        return runs_of(_ACTIVE.rows(connection))

    @reads
    def read_node_use(self, connection: Connection, now: float) -> list[NodeUse]:
        """Who has lately used how many nodes for how long: jobs that have ended, as far as they still count."""
        statement = (
            select(runs.c.submitted_by, runs.c.nodes, runs.c.started_at, runs.c.ended_at)
            .where(runs.c.ended_at.is_not(None), runs.c.started_at.is_not(None), runs.c.nodes.not_in(("", "[]")))
            .where(runs.c.created_at > now - _USE_SECONDS)
            .order_by(runs.c.created_at.desc())
            .limit(_MOST_USES)
        )
        rows = connection.execute(statement)
        return [NodeUse(user, len(json.loads(nodes)), since, until) for user, nodes, since, until in rows]

    @reads_once
    def has_active_children(self, connection: Connection, run_id: str) -> bool:
        """Whether a child of this run has not ended. A child that has ended has no active children itself."""
        return _ACTIVE_CHILD.row(connection, id=run_id) is not None

    @writes
    def add(self, connection: Connection, run: RunRecord) -> RunRecord:
        """Add a run and return it with its seq and number. A run that is there already stays: clients retry."""
        present = self.get(run.id)
        if present is not None:
            return present
        if run.parent_id is not None and _SEQ.row(connection, id=run.parent_id) is None:
            raise RunNotFoundException(f"There is no run {run.parent_id!r} to be the parent of {run.id!r}")
        return self.add_new(run)

    @writes
    def add_many(self, connection: Connection, new: Iterable[RunRecord]) -> list[RunRecord]:
        """Add several runs, all or none."""
        return [self.add(run) for run in new]

    @writes
    def add_new(self, connection: Connection, run: RunRecord) -> RunRecord:
        """Add a run whose id is known to be new, and whose parent is known to be there."""
        run = replace(run, tags=labels.tags_of(run.tags), properties=labels.properties_of(run.properties))
        if run.status in TERMINAL and run.ended_at is None:
            run = replace(run, ended_at=run.created_at)
        experiment, number = self._next_number(connection, run)
        columns = {**insertion_of(run), "experiment_seq": experiment, "number": number}
        _INSERT.run(connection, [tuple(columns[name] for name in _INSERTED)])
        seq = self.get_seq(run.id)
        if run.spec:
            _INSERT_SPEC.run(connection, [(seq, run.spec)])
            arguments.index(connection, seq, run.spec)
        labels.index(connection, seq, labels.TAG, run.tags)
        labels.index(connection, seq, labels.PROPERTY, run.properties)
        return replace(run, seq=seq, number=number)

    def move(
        self,
        run_id: str,
        to: Status,
        *,
        expect: Collection[Status] | None = None,
        at: float,
        durable: bool = True,
        **changes: Any,
    ) -> RunRecord | None:
        """Move a run to the state `to`, if its state is one that `to` may follow (and is in `expect`, if given).

        Return the run as it is afterwards, or None if its state was another one: then nothing was changed.
        `started_at` is set when the run starts, `ended_at` when it ends, and the fields in `changes`. A move that is
        not `durable` may be undone by a power cut.
        """
        with self._database.write() if durable else self._database.write_lazily() as connection:
            allowed = _PREDECESSORS[to] & frozenset(expect) if expect is not None else _PREDECESSORS[to]
            columns = columns_of(changes)
            if to is Status.RUNNING:
                columns.setdefault("started_at", at)
            if to in TERMINAL:
                columns["ended_at"] = columns.get("ended_at") or at
                columns.setdefault("waiting_for", "")
            columns["status"] = str(to)
            values = {f"new_{name}": value for name, value in columns.items()}
            guarded = _make_guarded_update(frozenset(columns), allowed, to is Status.RUNNING)
            moved = guarded.run(connection, which=run_id, **values)
            record = self._require(run_id)
            return record if moved else None

    @writes
    def update(self, connection: Connection, /, run_id: str, **changes: Any) -> RunRecord:
        """Set fields that do not belong to the state, such as `waiting_for`, `nodes` or `display_name`."""
        seq = self.get_seq(run_id)
        if "ended_at" in changes:
            raise UserErrorException("A run's ended_at is set when it ends")
        columns = columns_of(changes)
        if columns:
            connection.execute(update(runs).where(runs.c.seq == seq).values(**columns))
        return self._require(run_id)

    @writes
    def add_warnings(self, connection: Connection, run_id: str, *texts: str, instead_of: str = "") -> None:
        """Append warnings that the run does not have yet; those that begin with `instead_of` are removed."""
        seq = self.get_seq(run_id)
        row = _WARNINGS.row(connection, seq=seq)
        before: list[str] = json.loads(row[0]) if row and row[0] else []
        kept = [text for text in before if not (instead_of and text.startswith(instead_of))]
        # A script that causes a warning in every step must not fill the row.
        after = list(dict.fromkeys([*kept, *map(clean, texts)]))[:_MOST_WARNINGS]
        if after != before:
            connection.execute(update(runs).where(runs.c.seq == seq).values(warnings=dump_collection(after)))

    @writes
    def set_archived(self, connection: Connection, run_ids: Sequence[str], at: float | None) -> list[str]:
        """Archive runs with their descendants at a time, or restore them (None). Return the ids of those that changed.

        Nothing changes if one of them does not exist or has not ended.
        """
        family = self._list_family(connection, run_ids)
        active = next((run_id for run_id, _, ended_at in family if ended_at is None), None)
        if active is not None and at is not None:
            raise UserErrorException(
                f"run {active} has not ended", hint="Wait for it, or cancel it first: only ended runs are archived."
            )
        changed = [run_id for run_id, archived_at, _ in family if (archived_at is None) == (at is not None)]
        for part in chunks(changed):
            connection.execute(update(runs).where(runs.c.id.in_(part)).values(archived_at=at))
        return changed

    def _list_family(self, connection: Connection, run_ids: Sequence[str]) -> list[Sequence[Any]]:
        """The id, the time of archiving and the end of these runs and all their descendants."""
        found: list[Sequence[Any]] = []
        columns = (runs.c.id, runs.c.archived_at, runs.c.ended_at)
        for part in chunks(list(dict.fromkeys(run_ids))):
            wanted: Sequence[Sequence[Any]] = connection.execute(select(*columns).where(runs.c.id.in_(part))).all()
            missing = set(part) - {row[0] for row in wanted}
            if missing:
                raise no_such_run(min(missing))
            while wanted:
                found += wanted
                wanted = [
                    row for each in chunks([row[0] for row in wanted]) for row in self._children(connection, each)
                ]
        return list({row[0]: row for row in found}.values())

    def _children(self, connection: Connection, run_ids: Sequence[str]) -> Sequence[Sequence[Any]]:
        columns = (runs.c.id, runs.c.archived_at, runs.c.ended_at)
        return connection.execute(select(*columns).where(runs.c.parent_id.in_(run_ids))).all()

    @writes
    def set_tags(self, connection: Connection, run_id: str, tags: Mapping[str, Any]) -> None:
        """Merge `tags` into those of the run; a value may be None."""
        labels.set_tags(connection, self.get_seq(run_id), tags)

    @writes
    def remove_tags(self, connection: Connection, run_id: str, names: Collection[str]) -> None:
        """Remove these tags; unknown ones are ignored."""
        labels.remove_tags(connection, self.get_seq(run_id), names)

    @writes
    def add_properties(self, connection: Connection, run_id: str, properties: Mapping[str, Any]) -> None:
        """Add write-once properties. Repeating a value is fine; another value is an error, and nothing is added."""
        taken = labels.add_properties(connection, self.get_seq(run_id), properties)
        if taken:
            raise UserErrorException(
                f"The run {run_id!r} has another value for {', '.join(map(repr, taken))} already",
                cause="Properties are written once.",
                hint="Choose another name, or use tags, which can change.",
            )

    def _require(self, run_id: str) -> RunRecord:
        record = self.get(run_id)
        if record is None:
            raise no_such_run(run_id)
        return record

    def _next_number(self, connection: Connection, run: RunRecord) -> tuple[int, int]:
        """The experiment's row number and the run's number in it, counted in the experiment's row."""
        if not _COUNT.run(connection, which=run.experiment):
            self._experiments.ensure(run.experiment, run.created_at)
            _COUNT.run(connection, which=run.experiment)
        row = _EXPERIMENT.row(connection, name=run.experiment)
        assert row is not None
        return int(row[0]), int(row[1])


@lru_cache(maxsize=256)
def _make_guarded_update(columns: frozenset[str], allowed: frozenset[Status], is_start: bool) -> PreparedChange:
    """An update of these columns of a run in one of these states; a start time that is there stays."""
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in sorted(columns)}
    if is_start:
        values["started_at"] = func.coalesce(runs.c.started_at, values["started_at"])
    if "ended_at" in columns:
        start = bindparam("new_started_at") if "started_at" in columns else runs.c.started_at
        values["ended_at"] = _not_earlier_than(func.coalesce(start, runs.c.created_at), values["ended_at"])
    states = sorted(map(str, allowed))
    return PreparedChange(
        update(runs)
        .where(runs.c.id == bindparam("which"), or_(false(), *(runs.c.status == state for state in states)))
        .values(**values)
    )


def _not_earlier_than(earliest: ColumnElement[float], time: ColumnElement[float]) -> ColumnElement[float]:
    """The time, or `earliest` if the clock was set back in between."""
    return case((time < earliest, earliest), else_=time)
