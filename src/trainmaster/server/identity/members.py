"""The roles of users in workspaces."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from trainmaster.job.errors import UserErrorException
from trainmaster.server.identity import schema
from trainmaster.server.identity.accounts import AccountCache
from trainmaster.server.identity.database import ServerDatabase
from trainmaster.server.identity.users import no_user
from trainmaster.server.permissions import Role, highest_role

_GRANTED = "granted"


@dataclass(frozen=True)
class Member:
    """A user with a role in a workspace."""

    user: str
    role: Role
    is_by_group: bool = False
    """The role comes from a group of the provider, and ends with it."""


class Members:
    """Reads and changes roles."""

    def __init__(self, database: ServerDatabase, cache: AccountCache) -> None:
        self._database = database
        self._cache = cache

    def grant(self, workspace: str, user: str, role: str) -> Member:
        """Give a user a role, instead of one granted before."""
        checked = check_role(role)
        roles = schema.roles
        key = {"workspace": workspace, "user_name": user, "source": _GRANTED}
        with self._database.write() as connection:
            if connection.execute(select(schema.users.c.name).where(schema.users.c.name == user)).first() is None:
                raise no_user(user)
            connection.execute(delete(roles).filter_by(**key))
            connection.execute(insert(roles).values(**key, role=str(checked)))
        self._cache.clear()
        return Member(user, checked)

    def revoke(self, workspace: str, user: str) -> None:
        """Take away the role that was granted. Without one, nothing happens."""
        roles = schema.roles
        with self._database.write() as connection:
            connection.execute(delete(roles).filter_by(workspace=workspace, user_name=user, source=_GRANTED))
        self._cache.clear()

    def list(self, workspace: str) -> list[Member]:
        """All members of a workspace, by name, each with the highest role."""
        roles = schema.roles
        found: dict[str, Member] = {}
        with self._database.read() as connection:
            statement = select(roles).where(roles.c.workspace == workspace).order_by(roles.c.user_name)
            for row in connection.execute(statement):
                member = Member(row.user_name, Role(row.role), row.source != _GRANTED)
                other = found.get(member.user)
                if other is None or highest_role((member.role, other.role)) is not other.role:
                    found[member.user] = member
        return list(found.values())

    def remove_workspace(self, workspace: str) -> None:
        """Forget all roles in a workspace, and end the tokens for it: the next one of this name has other members."""
        with self._database.write() as connection:
            connection.execute(delete(schema.roles).where(schema.roles.c.workspace == workspace))
            connection.execute(delete(schema.tokens).where(schema.tokens.c.workspace == workspace))
        self._cache.clear()


def check_role(role: str) -> Role:
    """The role of this name."""
    if role not in list(Role):
        raise UserErrorException(f"there is no role {str(role)[:40]!r}", hint=f"Use one of {', '.join(Role)}.")
    return Role(role)
