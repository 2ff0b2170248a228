"""Idempotency keys: a change that is sent again is answered again, and carried out once.

Before a change is carried out its key is claimed; afterwards the answer is kept for a day. A server that dies between
the two leaves a claim without an answer. The next request with this key then carries the change out again: operations
may be repeated, which is what makes this safe.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import Clock
from trainmaster.server.identity.database import ServerDatabase

KEPT_SECONDS = 24 * 3600.0
CLAIM_SECONDS = 30.0
"""How long a claim of a server counts that no longer renews it."""
LARGEST_ANSWER = 256 * 1024
"""Longer answers are not kept: the change is carried out again, which does no harm."""
LONGEST_KEY = 255


@dataclass(frozen=True)
class Answer:
    """The first answer to a change."""

    status: int
    headers: bytes
    body: bytes


class Claimed:
    """The key is ours: carry the change out."""


class InProgress:
    """Another request with this key is being carried out."""


class OtherRequest:
    """The key was used for another request."""


Outcome = Answer | Claimed | InProgress | OtherRequest


class IdempotencyKeys:
    """Claims keys and keeps answers. `server` tells the servers of one database apart."""

    def __init__(self, database: ServerDatabase, server: str, clock: Clock = time.time) -> None:
        self._database = database
        self._server = server
        self._clock = clock

    def claim(self, connection: Connection, caller: str, key: str, request: bytes) -> Outcome:
        """Claim a key for a caller, in this transaction, or tell why it cannot be claimed."""
        table, now = schema.idempotency, self._clock()
        mine = and_(table.c.caller == caller, table.c.key == key)
        row = connection.execute(select(table).where(mine).with_for_update()).one_or_none()
        if row is not None and row.created_at < now - KEPT_SECONDS:
            connection.execute(delete(table).where(mine))
            row = None
        if row is None:
            values = {"caller": caller, "key": key, "request": request, "created_at": now}
            claim = {"server": self._server, "claimed_until": now + CLAIM_SECONDS}
            make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            claiming = make(table).values(**values, **claim).on_conflict_do_nothing().returning(table.c.key)
            # Another server may have claimed it since the look-up.
            return Claimed() if connection.execute(claiming).first() else InProgress()
        if bytes(row.request) != request:
            return OtherRequest()
        if row.status is not None:
            return Answer(row.status, bytes(row.headers or b""), bytes(row.body or b""))
        if row.claimed_until > now:
            return InProgress()
        claim = {"server": self._server, "claimed_until": now + CLAIM_SECONDS}
        connection.execute(update(table).where(mine).values(**claim))
        return Claimed()

    def keep(self, connection: Connection, caller: str, key: str, answer: Answer) -> None:
        """Keep the answer to a change that was carried out, in this transaction."""
        table = schema.idempotency
        kept = update(table).where(table.c.caller == caller, table.c.key == key)
        values = {"status": answer.status, "headers": answer.headers, "body": answer.body}
        connection.execute(kept.values(server="", claimed_until=0.0, **values))

    def release(self, connection: Connection, caller: str, key: str) -> None:
        """Forget a claim: the change was not carried out, or its answer cannot be kept."""
        table = schema.idempotency
        connection.execute(delete(table).where(table.c.caller == caller, table.c.key == key, table.c.status.is_(None)))

    def renew(self) -> None:
        """Extend all claims of this server."""
        table = schema.idempotency
        mine = update(table).where(table.c.server == self._server, table.c.status.is_(None))
        with self._database.write_lazily() as connection:
            connection.execute(mine.values(claimed_until=self._clock() + CLAIM_SECONDS))

    def release_all(self) -> None:
        """Forget the claims of all servers. Only for a server that is the only one on this database."""
        with self._database.write_lazily() as connection:
            connection.execute(delete(schema.idempotency).where(schema.idempotency.c.status.is_(None)))

    def remove_old(self) -> None:
        """Delete what is older than a day."""
        table = schema.idempotency
        with self._database.write_lazily() as connection:
            connection.execute(delete(table).where(table.c.created_at < self._clock() - KEPT_SECONDS))
