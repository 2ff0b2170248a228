"""Browsers: sign-in links that work once, and the sessions behind cookies."""

from __future__ import annotations

import hashlib
import hmac
import time

from sqlalchemy import delete, insert, select

from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import AccountCache, Clock
from trainmaster.server.identity.database import ServerDatabase
from trainmaster.server.identity.secret_texts import hash_secret, make_code
from trainmaster.server.identity.users import no_user

LINK_MINUTES = 15
SESSION_HOURS = 12.0


class Sessions:
    """Creates and ends sessions, and the links that begin them."""

    def __init__(
        self, database: ServerDatabase, cache: AccountCache, clock: Clock = time.time, hours: float = SESSION_HOURS
    ) -> None:
        self._database = database
        self._cache = cache
        self._clock = clock
        self.seconds = hours * 3600

    def create_link(self, user: str, minutes: float = LINK_MINUTES) -> str:
        """The code of a new sign-in link for a user. It works once, within `minutes`."""
        code, now = make_code(), self._clock()
        links = schema.sign_in_links
        with self._database.write() as connection:
            if connection.execute(select(schema.users.c.name).where(schema.users.c.name == user)).first() is None:
                raise no_user(user)
            connection.execute(delete(links).where(links.c.expires_at < now))
            values = {"digest": hash_secret(code), "user_name": user, "expires_at": now + minutes * 60}
            connection.execute(insert(links).values(**values))
        return code

    def redeem_link(self, code: str) -> str | None:
        """The user of a link, which is used up by this; None for one that is unknown, used or expired."""
        links = schema.sign_in_links
        digest = hash_secret(code)
        with self._database.write() as connection:
            row = connection.execute(select(links).where(links.c.digest == digest)).one_or_none()
            # Of two servers, or two requests, only one deletes it.
            deleted = connection.execute(delete(links).where(links.c.digest == digest)).rowcount
        return row.user_name if row is not None and deleted and self._clock() < row.expires_at else None

    def start(self, user: str) -> str:
        """The value of the cookie of a new session."""
        secret, now = make_code(), self._clock()
        sessions = schema.sessions
        values = {"user_name": user, "created_at": now, "expires_at": now + self.seconds}
        with self._database.write() as connection:
            connection.execute(delete(sessions).where(sessions.c.expires_at < now))
            connection.execute(insert(sessions).values(digest=hash_secret(secret), **values))
        return secret

    def end(self, secret: str) -> None:
        """Sign out: the cookie is worth nothing from now on."""
        with self._database.write() as connection:
            connection.execute(delete(schema.sessions).where(schema.sessions.c.digest == hash_secret(secret)))
        self._cache.clear()

    def end_all(self, user: str) -> None:
        """Sign a user out everywhere."""
        with self._database.write() as connection:
            connection.execute(delete(schema.sessions).where(schema.sessions.c.user_name == user))
        self._cache.clear()


def derive_csrf_token(session: str) -> str:
    """What a page of ours sends beside the cookie. Other sites can make a browser send the cookie, but not read it."""
    return hashlib.sha256(b"csrf\0" + session.encode("utf-8", "surrogatepass")).hexdigest()


def is_csrf_token(session: str, token: str) -> bool:
    """Whether the token belongs to the session; takes the same time either way."""
    return hmac.compare_digest(derive_csrf_token(session).encode(), token.encode("utf-8", "surrogatepass"))
