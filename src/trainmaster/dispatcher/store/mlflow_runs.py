"""Runs as MLflow's clients know them: what they log, and how they change the state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, case, null, select, update

from trainmaster.dispatcher.store import labels
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.mlflow_experiments import text_of_label
from trainmaster.dispatcher.store.params import add_params, read_params
from trainmaster.dispatcher.store.runs import Runs
from trainmaster.dispatcher.store.schema import experiments, run_specs, runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.transactions import Repository, reads_once, writes
from trainmaster.dispatcher.store.values import clean
from trainmaster.shared.records import MLFLOW_RUN, TERMINAL, RunRecord, Status

RUN_NAME, PARENT = "mlflow.runName", "mlflow.parentRunId"
"""Tags that say something about the run itself."""
NO_END = -1
"""In `runs.end_ms` of a run that has ended: its client has not said when."""

END_MS = case(
    (runs.c.ended_at.is_(None), runs.c.end_ms), (runs.c.end_ms == NO_END, null()), else_=runs.c.ended_at * 1000.0
)
"""MLflow's end_time, for searching. A run of MLflow may have one although it goes on."""


def find_end_ms(ended_at: float | None, end_ms: int | None) -> int | None:
    """MLflow's end_time.

    >>> find_end_ms(None, 5000), find_end_ms(7.0, None), find_end_ms(7.0, NO_END)
    (5000, 7000, None)
    """
    if ended_at is None:
        return end_ms
    return None if end_ms == NO_END else round(ended_at * 1000)


@dataclass(frozen=True)
class RunHead:
    """What has to be known before a run is changed."""

    seq: int
    id: str
    type: str
    status: Status
    experiment_seq: int
    archived_at: float | None
    ended_at: float | None
    end_ms: int | None
    has_job: bool


_HEAD = PreparedSelect(
    select(
        runs.c.seq,
        runs.c.id,
        runs.c.type,
        runs.c.status,
        runs.c.experiment_seq,
        runs.c.archived_at,
        runs.c.ended_at,
        runs.c.end_ms,
        run_specs.c.run_seq,
    )
    .join_from(runs, run_specs, run_specs.c.run_seq == runs.c.seq, isouter=True)
    .where(runs.c.id == bindparam("id"))
)
_TAGS = PreparedSelect(select(runs.c.tags).where(runs.c.seq == bindparam("seq")))
_EXPERIMENT = PreparedSelect(select(experiments.c.name).where(experiments.c.seq == bindparam("seq")))
_PARENT = PreparedSelect(select(runs.c.parent_id).where(runs.c.id == bindparam("id")))


class MlflowRuns(Repository):
    """The runs of a workspace, for MLflow's clients."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = Runs(database)

    @reads_once
    def find_head(self, connection: Connection, run_id: str) -> RunHead | None:
        """What has to be known before a run is changed; None if there is no such run."""
        row = _HEAD.row(connection, id=run_id)
        if row is None:
            return None
        seq, identity, type_, status, experiment_seq, archived_at, ended_at, end_ms, spec = row
        state = Status(status)
        return RunHead(seq, identity, type_, state, experiment_seq, archived_at, ended_at, end_ms, spec is not None)

    @reads_once
    def get_params(self, connection: Connection, seq: int) -> dict[str, str]:
        """The parameters that were logged."""
        return read_params(connection, seq)

    @reads_once
    def get_tag(self, connection: Connection, seq: int, key: str) -> str:
        """The text of a tag; empty if there is none."""
        row = _TAGS.row(connection, seq=seq)
        return text_of_label(json.loads(row[0]).get(key)) if row and row[0] else ""

    @writes
    def create(
        self,
        connection: Connection,
        run_id: str,
        experiment_seq: int,
        *,
        name: str,
        user: str,
        tags: Mapping[str, str],
        at: float,
    ) -> RunRecord:
        """Create a run that is running."""
        experiment = _EXPERIMENT.row(connection, seq=experiment_seq)
        assert experiment is not None
        parent = tags.get(PARENT)
        return self._runs.add_new(
            RunRecord(
                id=run_id,
                experiment=experiment[0],
                status=Status.RUNNING,
                created_at=at,
                started_at=at,
                type=MLFLOW_RUN,
                parent_id=parent if parent and self.find_head(parent) is not None else None,
                display_name=name,
                submitted_by=user,
                tags=tags,
            )
        )

    @writes
    def log(
        self, connection: Connection, head: RunHead, params: Mapping[str, str], tags: Mapping[str, str]
    ) -> list[tuple[str, str, str]]:
        """Log parameters and set tags. If a parameter has another value already, nothing is changed.

        Returns the name, the present value and the new value of such parameters.
        """
        conflicts = add_params(connection, head.seq, params) if params else []
        tags = {key: value for key, value in tags.items() if value or key != RUN_NAME}
        if not conflicts and tags:
            labels.set_tags(connection, head.seq, tags)
            self._follow_tags(connection, head, tags)
        return conflicts

    @writes
    def remove_tag(self, connection: Connection, seq: int, key: str) -> bool:
        """Remove a tag; false if there is none."""
        return bool(labels.remove_tags(connection, seq, [key]))

    @writes
    def change(
        self,
        connection: Connection,
        head: RunHead,
        *,
        status: Status | None = None,
        end_ms: int | None = None,
        name: str = "",
        at: float,
    ) -> None:
        """Set the state, the end (0 for none) and the name, as far as they are given."""
        columns: dict[str, Any] = {}
        if status is not None or end_ms is not None:
            columns = _plan_state(head, status or head.status, end_ms, at)
        if name:
            columns["display_name"] = clean(name)
            labels.set_tags(connection, head.seq, {RUN_NAME: name})
        if columns:
            connection.execute(update(runs).where(runs.c.seq == head.seq).values(**columns))

    @writes
    def set_archived(self, connection: Connection, seq: int, at: float | None) -> None:
        """Delete a run, without its children, or restore it (None)."""
        connection.execute(update(runs).where(runs.c.seq == seq).values(archived_at=at))

    def _follow_tags(self, connection: Connection, head: RunHead, tags: Mapping[str, str]) -> None:
        """Some tags are columns, too."""
        if tags.get(RUN_NAME):
            name = clean(tags[RUN_NAME])
            connection.execute(update(runs).where(runs.c.seq == head.seq).values(display_name=name))
        parent = tags.get(PARENT)
        if (
            parent
            and head.type == MLFLOW_RUN
            and self.find_head(parent)
            and not self._is_below(connection, parent, head.id)
        ):
            connection.execute(update(runs).where(runs.c.seq == head.seq).values(parent_id=parent))

    def _is_below(self, connection: Connection, run_id: str | None, ancestor: str) -> bool:
        while run_id is not None and run_id != ancestor:
            row = _PARENT.row(connection, id=run_id)
            run_id = row[0] if row else None
        return run_id is not None


def _plan_state(head: RunHead, status: Status, end_ms: int | None, at: float) -> dict[str, Any]:
    """The columns for a state and an end. Without a new end, the run keeps the one that it has."""
    end = (find_end_ms(head.ended_at, head.end_ms) if end_ms is None else end_ms) or None
    columns: dict[str, Any] = {"status": str(status), "ended_at": None, "end_ms": end}
    if status in TERMINAL:
        columns["ended_at"] = at if end is None else end / 1000.0
        columns["end_ms"] = NO_END if end is None else None
    return columns
