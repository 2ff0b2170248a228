"""What came of runs: their children, and the runs that run them again."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from trainmaster.dispatcher.store.listing import find
from trainmaster.dispatcher.store.schema import runs
from trainmaster.dispatcher.store.transactions import Repository, reads
from trainmaster.shared.records import RunQuery, RunRecord


class Lineage(Repository):
    """Links between runs."""

    @reads
    def count_children(self, connection: Connection, run_id: str) -> int:
        """How many children a run has."""
        statement = select(func.count()).select_from(runs).where(runs.c.parent_id == run_id)
        return int(connection.execute(statement).scalar_one())

    @reads
    def list_reruns(self, connection: Connection, run_id: str, most: int) -> list[RunRecord]:
        """The runs that run this one again, newest first."""
        query = RunQuery(properties={"origin": run_id}, include_children=True, archived=True, limit=most)
        return find(connection, query)
