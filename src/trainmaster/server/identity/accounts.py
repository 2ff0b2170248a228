"""Who a caller is, as the database knows it: the user behind a token or a session, with all roles."""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, select

from trainmaster.server.identity import schema
from trainmaster.server.identity.database import ServerDatabase
from trainmaster.server.identity.secret_texts import hash_secret

Clock = Callable[[], float]

CACHE_SECONDS = 1.0
"""How long another process (a second server, the command line) may change something unnoticed."""
_CACHED = 4096


@dataclass(frozen=True)
class Scope:
    """What a token is restricted to; all None: everything its user may do."""

    workspace: str | None = None
    role: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, eq=False)
class Account:
    """A user who has shown a valid token or session. Each look-up gives another one."""

    user: str
    is_admin: bool
    roles: Mapping[str, tuple[str, ...]]
    """Of each workspace: the roles that were granted, and those by group."""
    credential: str
    """For the audit log: "token <id>" or "session"."""
    expires_at: float | None
    scope: Scope
    token_id: str = ""
    """Empty for a session."""


class AccountCache:
    """The accounts of the last second, by digest. A change in this process empties it at once."""

    def __init__(self, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._entries: OrderedDict[bytes, tuple[float, Account]] = OrderedDict()
        self._generation = 0
        self._lock = Lock()

    def get(self, digest: bytes) -> Account | None:
        """The account, if it was looked up within the last second."""
        with self._lock:
            found = self._entries.get(digest)
            if found is None or self._monotonic() - found[0] > CACHE_SECONDS:
                return None
            return found[1]

    @property
    def generation(self) -> int:
        """Changes with every change of accounts. What was read before must not be put in after."""
        return self._generation

    def put(self, digest: bytes, account: Account, generation: int) -> None:
        """Keep an account that was read when the cache had this generation."""
        with self._lock:
            if generation != self._generation:
                return
            self._entries[digest] = self._monotonic(), account
            self._entries.move_to_end(digest)
            while len(self._entries) > _CACHED:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything: a user, token, role or session has changed."""
        with self._lock:
            self._generation += 1
            self._entries.clear()


class Accounts:
    """Finds the account of a token or of a session's cookie: one indexed look-up each, and a cache before it."""

    def __init__(self, database: ServerDatabase, cache: AccountCache, clock: Clock = time.time) -> None:
        self._database = database
        self._cache = cache
        self._clock = clock

    @property
    def generation(self) -> int:
        """Changes with every change of accounts in this process."""
        return self._cache.generation

    def find_cached_token(self, secret: str) -> Account | None:
        """The account of a token that was used within the last second; never waits."""
        found = self._cache.get(hash_secret(secret))
        return found if found and found.token_id and self._is_valid(found.expires_at) else None

    def find_cached_session(self, secret: str) -> Account | None:
        """The account of a cookie that was used within the last second; never waits."""
        found = self._cache.get(hash_secret(secret))
        return found if found and not found.token_id and self._is_valid(found.expires_at) else None

    def find_by_token(self, secret: str) -> Account | None:
        """The account of a token; None for one that is unknown, revoked or expired."""
        table = schema.tokens
        return self._find(table, secret, table.c.revoked_at.is_(None), _account_of_token)

    def find_by_session(self, secret: str) -> Account | None:
        """The account of a session's cookie; None for one that is unknown, signed out or expired."""
        return self._find(schema.sessions, secret, None, _account_of_session)

    def _find(
        self,
        table: Table,
        secret: str,
        condition: ColumnElement[bool] | None,
        build: Callable[[Any, bool, Mapping[str, tuple[str, ...]]], Account],
    ) -> Account | None:
        generation = self._cache.generation
        digest = hash_secret(secret)
        statement = _select_with_roles(table).where(table.c.digest == digest)
        if condition is not None:
            statement = statement.where(condition)
        with self._database.read() as connection:
            rows = connection.execute(statement).all()
        if not rows or not hmac.compare_digest(bytes(rows[0].digest), digest):
            return None
        roles: dict[str, tuple[str, ...]] = {}
        for row in rows:
            if row.granted_in is not None:
                roles[row.granted_in] = (*roles.get(row.granted_in, ()), row.granted_role)
        account = build(rows[0], bool(rows[0].is_admin or rows[0].is_admin_by_group), roles)
        if not self._is_valid(account.expires_at):
            return None
        self._cache.put(digest, account, generation)
        return account

    def _is_valid(self, expires_at: float | None) -> bool:
        return expires_at is None or self._clock() < expires_at


def _select_with_roles(table: Table) -> Select[Any]:
    users, roles = schema.users, schema.roles
    joined = table.join(users, users.c.name == table.c.user_name).outerjoin(
        roles, roles.c.user_name == table.c.user_name
    )
    return select(
        table,
        users.c.is_admin,
        users.c.is_admin_by_group,
        roles.c.workspace.label("granted_in"),
        roles.c.role.label("granted_role"),
    ).select_from(joined)


def _account_of_token(row: Any, is_admin: bool, roles: Mapping[str, tuple[str, ...]]) -> Account:
    scope = Scope(row.workspace, row.role, row.run_id)
    return Account(row.user_name, is_admin, roles, f"token {row.id}", row.expires_at, scope, row.id)


def _account_of_session(row: Any, is_admin: bool, roles: Mapping[str, tuple[str, ...]]) -> Account:
    return Account(row.user_name, is_admin, roles, "session", row.expires_at, Scope())
