"""The users of a server."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from trainmaster.job.errors import UserErrorException
from trainmaster.server.errors import UnknownNameError
from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import AccountCache, Clock
from trainmaster.server.identity.database import ServerDatabase

# A person's name or e-mail address, in one spelling: `Ada` and `ada` must not be two people.
_NAME = re.compile(r"[a-z0-9][a-z0-9._+@-]{0,127}", re.ASCII)


@dataclass(frozen=True)
class User:
    """A person, or a program, that has tokens."""

    name: str
    is_admin: bool
    created_at: float
    subject: str | None = None
    """Who the user is at the OpenID Connect provider."""


class Users:
    """Reads and changes users."""

    def __init__(self, database: ServerDatabase, cache: AccountCache, clock: Clock = time.time) -> None:
        self._database = database
        self._cache = cache
        self._clock = clock

    def add(self, name: str, *, is_admin: bool = False, issuer: str | None = None, subject: str | None = None) -> User:
        """Add a user. An equal one that exists already is returned; repeating is harmless."""
        name = check_name(name)
        with self._database.write() as connection:
            found = _find(connection, name)
            if found is not None:
                if found.is_admin != is_admin or (subject or None) != found.subject:
                    raise UserErrorException(
                        f"there is a user '{name}' already",
                        hint="Remove the user first, or choose another name.",
                    )
                return _to_user(found)
            user = User(name, is_admin, self._clock(), subject)
            connection.execute(insert(schema.users).values(**asdict(user), is_admin_by_group=False, issuer=issuer))
        return user

    def get(self, name: str) -> User:
        """The user of this name."""
        with self._database.read() as connection:
            found = _find(connection, name)
        if found is None:
            raise no_user(name)
        return _to_user(found)

    def list(self) -> list[User]:
        """All users, by name."""
        with self._database.read() as connection:
            return [_to_user(row) for row in connection.execute(select(schema.users).order_by(schema.users.c.name))]

    def change(self, name: str, *, is_admin: bool) -> User:
        """Make a user an administrator, or no longer one."""
        with self._database.write() as connection:
            found = _find(connection, name)
            if found is None:
                raise no_user(name)
            if found.is_admin and not is_admin:
                _keep_an_administrator(connection, name)
            connection.execute(update(schema.users).where(schema.users.c.name == name).values(is_admin=is_admin))
        self._cache.clear()
        return self.get(name)

    def remove(self, name: str) -> None:
        """Remove a user with all tokens, roles and sessions. The audit log keeps what the user has done."""
        with self._database.write() as connection:
            found = _find(connection, name)
            if found is None:
                raise no_user(name)
            if found.is_admin:
                _keep_an_administrator(connection, name)
            connection.execute(delete(schema.users).where(schema.users.c.name == name))
        self._cache.clear()

    def sign_in(self, name: str, issuer: str, subject: str, *, is_admin: bool, roles: Mapping[str, str]) -> User:
        """The user that a provider has identified: added at the first sign-in, with the roles of the groups now.

        Only issuer and subject identify a user. A name that belongs to someone else is refused, or else whoever may
        choose a name at the provider could become anybody here.
        """
        name = check_name(name)
        users = schema.users
        with self._database.write() as connection:
            known = select(users).where(users.c.issuer == issuer, users.c.subject == subject)
            found = connection.execute(known).one_or_none()
            if found is None:
                found = _find(connection, name)
                if found is not None and (found.subject != subject or found.issuer is not None):
                    raise UserErrorException(
                        f"the name '{name}' belongs to another user",
                        cause="The provider has identified someone of this name whom the server does not know.",
                        hint="An administrator can link them: `trainmaster server user add NAME --subject SUBJECT`.",
                    )
                if found is None:
                    values = {"name": name, "is_admin": False, "is_admin_by_group": False, "created_at": self._clock()}
                    connection.execute(insert(users).values(**values, issuer=issuer, subject=subject))
                else:
                    connection.execute(update(users).where(users.c.name == name).values(issuer=issuer))
            else:
                name = found.name
            connection.execute(update(users).where(users.c.name == name).values(is_admin_by_group=is_admin))
            _replace_group_roles(connection, name, roles)
        self._cache.clear()
        return self.get(name)


def check_name(name: str) -> str:
    """The name of a user, in lower case; a UserErrorException if it cannot be one."""
    lowered = name.lower() if isinstance(name, str) else ""
    if not _NAME.fullmatch(lowered):
        raise UserErrorException(
            f"{str(name)[:100]!r} cannot be the name of a user",
            hint="Use letters, digits and . _ + @ -, beginning with a letter or digit; 128 at most.",
        )
    return lowered


def no_user(name: str) -> UnknownNameError:
    """The error for an unknown user."""
    return UnknownNameError(f"there is no user {name[:100]!r}", hint="`trainmaster server user list` shows all.")


def _find(connection: Connection, name: str) -> Any:
    return connection.execute(select(schema.users).where(schema.users.c.name == name)).one_or_none()


def _to_user(row: Any) -> User:
    return User(row.name, bool(row.is_admin or row.is_admin_by_group), row.created_at, row.subject)


def _keep_an_administrator(connection: Connection, name: str) -> None:
    users = schema.users
    others = select(func.count()).where(users.c.name != name, or_(users.c.is_admin, users.c.is_admin_by_group))
    if not connection.execute(others).scalar_one():
        raise UserErrorException(
            f"'{name}' is the only administrator", hint="Make someone else an administrator first."
        )


def _replace_group_roles(connection: Connection, name: str, roles: Mapping[str, str]) -> None:
    table = schema.roles
    connection.execute(delete(table).where(table.c.user_name == name, table.c.source == "group"))
    if roles:
        rows = [
            {"workspace": workspace, "user_name": name, "source": "group", "role": role}
            for workspace, role in roles.items()
        ]
        connection.execute(insert(table), rows)
