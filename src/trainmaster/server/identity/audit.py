"""The audit log: who has changed what, when, and with which outcome. It has no arguments, and so no secrets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import Clock
from trainmaster.server.identity.database import ServerDatabase

LARGEST_PAGE = 1000
_LONGEST_TARGET = 500


@dataclass(frozen=True)
class Change:
    """What a caller asks for, as it is known before it is carried out."""

    caller: str
    credential: str
    method: str
    route: str
    operation: str = ""
    workspace: str = ""
    target: str = ""
    request_id: str = ""
    address: str = ""


@dataclass(frozen=True)
class Entry:
    """A line of the audit log."""

    seq: int
    at: float
    change: Change
    status: int | None
    """The status of the answer; None if the server died before there was one."""
    count: int = 1
    """How many requests it stands for, all with the same outcome."""

    def to_plain(self) -> dict[str, Any]:
        return {"seq": self.seq, "at": self.at, **asdict(self.change), "status": self.status, "count": self.count}


class AuditLog:
    """Writes and reads the log. Nothing in it is ever changed, apart from missing outcomes, and counts."""

    def __init__(self, database: ServerDatabase, clock: Clock = time.time) -> None:
        self._database = database
        self._clock = clock

    def begin(self, connection: Connection, change: Change) -> int:
        """Write, in this transaction, that a change is about to be carried out."""
        values = {**asdict(change), "target": change.target[:_LONGEST_TARGET], "at": self._clock()}
        return int(connection.execute(insert(schema.audit).values(**values).returning(schema.audit.c.seq)).scalar_one())

    def finish(self, connection: Connection, seq: int, status: int) -> None:
        """Write, in this transaction, what became of a change."""
        audit = schema.audit
        connection.execute(update(audit).where(audit.c.seq == seq, audit.c.status.is_(None)).values(status=status))

    def open(self, change: Change) -> int:
        """Write that a change is about to be carried out."""
        with self._database.write_lazily() as connection:
            return self.begin(connection, change)

    def close(self, seq: int, status: int) -> None:
        """Write what became of a change."""
        with self._database.write_lazily() as connection:
            self.finish(connection, seq, status)

    def record(self, change: Change, status: int) -> None:
        """Write a change and its outcome at once."""
        with self._database.write_lazily() as connection:
            self.finish(connection, self.begin(connection, change), status)

    def add(self, counts: Mapping[int, int]) -> None:
        """Add to the numbers of requests that entries stand for."""
        audit = schema.audit
        statement = (
            update(audit).where(audit.c.seq == bindparam("entry")).values(count=audit.c.count + bindparam("more"))
        )
        with self._database.write_lazily() as connection:
            connection.execute(statement, [{"entry": seq, "more": more} for seq, more in counts.items()])

    def read(
        self, *, workspace: str | None = None, caller: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[Entry]:
        """The newest entries, or those before the entry `before`."""
        audit = schema.audit
        statement = select(audit).order_by(audit.c.seq.desc()).limit(max(1, min(limit, LARGEST_PAGE)))
        if workspace is not None:
            statement = statement.where(audit.c.workspace == workspace)
        if caller is not None:
            statement = statement.where(audit.c.caller == caller)
        if before is not None:
            statement = statement.where(audit.c.seq < before)
        with self._database.read() as connection:
            return [_to_entry(row) for row in connection.execute(statement)]

    def remove_old(self, seconds: float) -> int:
        """Delete entries that are older than this; the number of them."""
        with self._database.write_lazily() as connection:
            return connection.execute(delete(schema.audit).where(schema.audit.c.at < self._clock() - seconds)).rowcount


def _to_entry(row: Any) -> Entry:
    change = Change(
        row.caller,
        row.credential,
        row.method,
        row.route,
        row.operation,
        row.workspace,
        row.target,
        row.request_id,
        row.address,
    )
    return Entry(row.seq, row.at, change, row.status, row.count)
