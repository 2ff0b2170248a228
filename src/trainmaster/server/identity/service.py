"""The identity of a server as one object: the tables, and a few threads of their own to use them in."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from trainmaster.job.errors import TrainmasterError
from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import AccountCache, Accounts, Clock
from trainmaster.server.identity.audit import AuditLog
from trainmaster.server.identity.counting import Counting
from trainmaster.server.identity.database import ServerDatabase, open_database
from trainmaster.server.identity.idempotency import IdempotencyKeys
from trainmaster.server.identity.members import Members
from trainmaster.server.identity.sessions import SESSION_HOURS, Sessions
from trainmaster.server.identity.tokens import Tokens
from trainmaster.server.identity.users import Users

log = logging.getLogger("trainmaster.server")

P = ParamSpec("P")
T = TypeVar("T")

# Few, and not those of the event loop: file work must not delay the check of tokens.
_THREADS = 4
_KEY = "cookie key"


class IdentityService:
    """Users, tokens, roles, sessions, the audit log and idempotency keys of one server."""

    def __init__(
        self, database: ServerDatabase, session_hours: float = SESSION_HOURS, clock: Clock = time.time
    ) -> None:
        self.database = database
        cache = AccountCache()
        self.accounts = Accounts(database, cache, clock)
        self.users = Users(database, cache, clock)
        self.tokens = Tokens(database, cache, clock)
        self.members = Members(database, cache)
        self.sessions = Sessions(database, cache, clock, session_hours)
        self.audit = AuditLog(database, clock)
        self.counting = Counting(self.audit, self.run, clock)
        self.keys = IdempotencyKeys(database, secrets.token_hex(8), clock)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="identity")

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that uses the database, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **kwargs))

    def touch(self, token_id: str) -> None:
        """Note the use of a token. Returns at once; written at most once a minute."""
        if token_id and self.tokens.needs_touch(token_id):
            self._threads.submit(self._touch, token_id)

    def read_cookie_key(self) -> bytes:
        """The key that signs cookies; created at its first use, and the same for all servers of one database."""
        settings = schema.settings
        statement = select(settings.c.value).where(settings.c.name == _KEY)
        with self.database.read() as connection:
            found = connection.execute(statement).scalar_one_or_none()
        if found is not None:
            return bytes(found)
        try:
            with self.database.write() as connection:
                connection.execute(insert(settings).values(name=_KEY, value=secrets.token_bytes(32)))
        except IntegrityError:
            # Another server was faster.
            pass
        return self.read_cookie_key()

    def close(self) -> None:
        """Finish what was begun, and close the database."""
        self._threads.shutdown()
        self.database.close()

    def _touch(self, token_id: str) -> None:
        try:
            self.tokens.touch(token_id)
        except TrainmasterError as error:
            log.warning("the last use of a token was not written: %s", error.headline)


def open_identity(root: Path, url: str = "", session_hours: float = SESSION_HOURS) -> IdentityService:
    """Open the identity of the server in this root folder, or in the PostgreSQL database `url`."""
    return IdentityService(open_database(root, url), session_hours)
