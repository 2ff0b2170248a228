"""Where MLflow's clients find the files of runs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from trainmaster.dispatcher.store.schema import experiments, runs
from trainmaster.dispatcher.store.statements import PreparedSelect
from trainmaster.dispatcher.store.transactions import Repository, reads_once

_RUN = PreparedSelect(
    select(runs.c.type, experiments.c.seq, experiments.c.artifact_location)
    .join_from(runs, experiments, runs.c.experiment_seq == experiments.c.seq)
    .where(runs.c.id == bindparam("id"))
)


@dataclass(frozen=True)
class RunAddress:
    """What decides where the files of a run are, and who may change them."""

    type: str
    experiment_id: str
    location: str
    """Of the experiment; empty if its client gave none."""


class RunAddresses(Repository):
    """Finds the addresses of runs."""

    @reads_once
    def find(self, connection: Connection, run_id: str) -> RunAddress | None:
        """The address of a run, archived or not; None if there is no such run."""
        row = _RUN.row(connection, id=run_id)
        return RunAddress(row[0], str(row[1]), row[2]) if row else None
