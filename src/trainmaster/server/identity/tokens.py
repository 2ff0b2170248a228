"""The tokens of users: shown once, kept as a digest, with expiry, scope, last use and revocation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any

from sqlalchemy import delete, insert, select, update

from trainmaster.job.errors import UserErrorException
from trainmaster.server.errors import UnknownNameError
from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import AccountCache, Clock, Scope
from trainmaster.server.identity.database import ServerDatabase
from trainmaster.server.identity.secret_texts import hash_secret, make_id, make_token
from trainmaster.server.identity.users import no_user
from trainmaster.server.permissions import Role

DAY = 86400.0
DEFAULT_DAYS = 365.0
LONGEST_DAYS = 3650
_TOUCH_SECONDS = 60.0
_LONGEST_LABEL = 200


@dataclass(frozen=True)
class Token:
    """All that is known of a token. Its text is known only to whoever has it."""

    id: str
    user: str
    label: str
    created_at: float
    expires_at: float | None
    last_used_at: float | None
    revoked_at: float | None
    scope: Scope


class Tokens:
    """Reads and changes tokens."""

    def __init__(self, database: ServerDatabase, cache: AccountCache, clock: Clock = time.time) -> None:
        self._database = database
        self._cache = cache
        self._clock = clock
        self._touched: dict[str, float] = {}
        self._lock = Lock()

    def create(
        self,
        user: str,
        *,
        label: str = "",
        days: float | None = None,
        expires_at: float | None = None,
        scope: Scope | None = None,
        token_id: str = "",
    ) -> tuple[Token, str]:
        """A new token and its text, which cannot be shown again.

        A token of the same user that has the id `token_id` is replaced: whoever repeats a request has one token.
        """
        scope = check_scope(scope or Scope())
        secret, now = make_token(), self._clock()
        if days is not None:
            expires_at = min(_expire(now, days), expires_at or float("inf"))
        made = Token(token_id or make_id(), user, _check_label(label), now, expires_at, None, None, scope)
        tokens = schema.tokens
        with self._database.write() as connection:
            if connection.execute(select(schema.users.c.name).where(schema.users.c.name == user)).first() is None:
                raise no_user(user)
            connection.execute(delete(tokens).where(tokens.c.id == made.id, tokens.c.user_name == user))
            connection.execute(
                insert(tokens).values(
                    id=made.id,
                    digest=hash_secret(secret),
                    user_name=user,
                    label=made.label,
                    created_at=now,
                    expires_at=expires_at,
                    workspace=scope.workspace,
                    role=scope.role,
                    run_id=scope.run_id,
                )
            )
        self._cache.clear()
        return made, secret

    def list(self, user: str | None = None) -> list[Token]:
        """The tokens of a user, or of all users; the newest first."""
        tokens = schema.tokens
        statement = select(tokens).order_by(tokens.c.created_at.desc(), tokens.c.id)
        if user is not None:
            statement = statement.where(tokens.c.user_name == user)
        with self._database.read() as connection:
            return [_to_token(row) for row in connection.execute(statement)]

    def get(self, token_id: str) -> Token:
        """The token of this id."""
        with self._database.read() as connection:
            row = connection.execute(select(schema.tokens).where(schema.tokens.c.id == token_id)).one_or_none()
        if row is None:
            raise no_token(token_id)
        return _to_token(row)

    def revoke(self, token_id: str) -> Token:
        """End a token for ever. One that is revoked already stays so."""
        tokens = schema.tokens
        revoking = update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None))
        with self._database.write() as connection:
            connection.execute(revoking.values(revoked_at=self._clock()))
        self._cache.clear()
        return self.get(token_id)

    def needs_touch(self, token_id: str) -> bool:
        """Whether the last use of a token should be written now: at most once a minute."""
        now = self._clock()
        with self._lock:
            if now - self._touched.get(token_id, 0.0) < _TOUCH_SECONDS:
                return False
            self._touched[token_id] = now
            return True

    def touch(self, token_id: str) -> None:
        """Write that a token was used just now."""
        tokens = schema.tokens
        with self._database.write_lazily() as connection:
            connection.execute(update(tokens).where(tokens.c.id == token_id).values(last_used_at=self._clock()))


def no_token(token_id: str) -> UnknownNameError:
    """The error for an unknown token."""
    return UnknownNameError(
        f"there is no token {token_id[:40]!r}",
        hint="`trainmaster server token list` shows all; give the id, not the text.",
    )


def check_scope(scope: Scope) -> Scope:
    """The scope, if it can be one."""
    if scope.role is not None and scope.role not in list(Role):
        raise UserErrorException(f"there is no role {scope.role[:40]!r}", hint=f"Use one of {', '.join(Role)}.")
    if scope.run_id is not None and scope.workspace is None:
        raise UserErrorException("a token for one run needs its workspace")
    if scope.run_id is not None and scope.role is not None:
        raise UserErrorException("a token for one run has no role", cause="It may do what a job may do.")
    return scope


def _expire(now: float, days: float) -> float:
    if not 0 < days <= LONGEST_DAYS:
        raise UserErrorException(f"a token can be valid for up to {LONGEST_DAYS} days, not for {days:g}")
    return now + days * DAY


def _check_label(label: str) -> str:
    if len(label) > _LONGEST_LABEL or not label.isprintable():
        raise UserErrorException(
            "the label is not one line of printable text", hint=f"{_LONGEST_LABEL} characters at most."
        )
    return label


def _to_token(row: Any) -> Token:
    scope = Scope(row.workspace, row.role, row.run_id)
    return Token(
        row.id, row.user_name, row.label, row.created_at, row.expires_at, row.last_used_at, row.revoked_at, scope
    )
