"""Quotas, and the disk that ended runs take: a size for each run, and a sum for each user."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from trainmaster.dispatcher.store.schema import disk_use, logged_models, quotas, run_sizes, runs
from trainmaster.dispatcher.store.statements import PreparedSelect, chunks
from trainmaster.dispatcher.store.transactions import Repository, reads, writes, writes_lazily
from trainmaster.shared.records import NOBODY, Quota

_COLUMNS = (quotas.c.owner, quotas.c.runs, quotas.c.nodes, quotas.c.gpus, quotas.c.disk_bytes)
_RUN = PreparedSelect(select(runs.c.seq, runs.c.submitted_by).where(runs.c.id == bindparam("id")))
_SIZE = PreparedSelect(select(run_sizes.c.disk_bytes).where(run_sizes.c.run_seq == bindparam("seq")))


class Quotas(Repository):
    """What users and the workspace may use, and how much disk they use."""

    @reads
    def list_all(self, connection: Connection) -> list[Quota]:
        """All quotas, by owner."""
        return [Quota(*row) for row in connection.execute(select(*_COLUMNS).order_by(quotas.c.owner))]

    @writes
    def put(self, connection: Connection, quota: Quota) -> None:
        """Add a quota, or replace that of its owner. One without any limit is deleted."""
        connection.execute(delete(quotas).where(quotas.c.owner == quota.owner))
        if any(limit is not None for name, limit in asdict(quota).items() if name != "owner"):
            connection.execute(insert(quotas), asdict(quota))

    @reads
    def read_disk_use(self, connection: Connection) -> dict[str, int]:
        """User to the bytes of their runs, as far as they were measured; files without a run are those of `NOBODY`."""
        rows = connection.execute(select(disk_use.c.owner, disk_use.c.disk_bytes).where(disk_use.c.disk_bytes > 0))
        return {str(owner): int(count) for owner, count in rows}

    @reads
    def list_unmeasured(self, connection: Connection, most: int, after: int = 0) -> list[tuple[int, str]]:
        """Ended runs without a size, by number and id, oldest first, after the run with this number."""
        statement = (
            select(runs.c.seq, runs.c.id)
            .where(runs.c.seq > after, runs.c.ended_at.is_not(None))
            .where(runs.c.seq.not_in(select(run_sizes.c.run_seq)))
            .order_by(runs.c.seq)
            .limit(most)
        )
        return [(seq, run_id) for seq, run_id in connection.execute(statement)]

    @writes_lazily
    def set_size(self, connection: Connection, run_id: str, count: int) -> None:
        """Keep the size of a run; a run that is deleted already is ignored."""
        row = _RUN.row(connection, id=run_id)
        if row is None:
            return
        seq, owner = row
        before = _SIZE.row(connection, seq=seq)
        connection.execute(delete(run_sizes).where(run_sizes.c.run_seq == seq))
        connection.execute(insert(run_sizes), {"run_seq": seq, "disk_bytes": count})
        _add(connection, owner, count - (before[0] if before else 0))

    @writes_lazily
    def set_size_of_others(self, connection: Connection, count: int) -> None:
        """Keep the size of all files that belong to no run."""
        connection.execute(delete(disk_use).where(disk_use.c.owner == NOBODY))
        connection.execute(insert(disk_use), {"owner": NOBODY, "disk_bytes": count})

    @reads
    def list_models_without_run(self, connection: Connection) -> list[str]:
        """The logged models that no run of the workspace has made, which are not deleted with one."""
        of_a_run = select(runs.c.id).where(runs.c.id == logged_models.c.source_run_id).exists()
        return list(connection.execute(select(logged_models.c.id).where(~of_a_run)).scalars())

    @reads
    def find_run_of_model(self, connection: Connection, model_id: str) -> str:
        """The run that has made a logged model; empty without one."""
        found = connection.execute(select(logged_models.c.source_run_id).where(logged_models.c.id == model_id)).scalar()
        return found or ""


def forget_sizes(connection: Connection, seqs: list[int]) -> None:
    """Subtract the sizes of runs that are being deleted."""
    for part in chunks(seqs):
        rows = connection.execute(
            select(runs.c.submitted_by, func.sum(run_sizes.c.disk_bytes))
            .join_from(run_sizes, runs, run_sizes.c.run_seq == runs.c.seq)
            .where(run_sizes.c.run_seq.in_(part))
            .group_by(runs.c.submitted_by)
        ).all()
        for owner, count in rows:
            _add(connection, owner, -int(count))
        connection.execute(delete(run_sizes).where(run_sizes.c.run_seq.in_(part)))


def _add(connection: Connection, owner: str, count: int) -> None:
    mine = disk_use.c.owner == owner
    if not connection.execute(update(disk_use).where(mine).values(disk_bytes=disk_use.c.disk_bytes + count)).rowcount:
        connection.execute(insert(disk_use), {"owner": owner, "disk_bytes": count})
