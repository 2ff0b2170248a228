"""Who may do what: permissions of routes, roles in workspaces, and the caller of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Permission(StrEnum):
    """What a route requires of its caller. Every route has exactly one."""

    PUBLIC = "public"
    """Nothing: anybody who reaches the server."""
    SIGNED_IN = "signed in"
    """A valid token or session, of any user."""
    READ = "read"
    """At least the role reader in the workspace."""
    CONTRIBUTE = "contribute"
    """At least the role contributor in the workspace."""
    OWN = "own"
    """The role owner in the workspace."""
    ADMINISTER = "administer"
    """An administrator of the server."""


class Role(StrEnum):
    """What a user is in a workspace. Each role includes the ones before it."""

    READER = "reader"
    CONTRIBUTOR = "contributor"
    OWNER = "owner"


def highest_role(roles: Iterable[Role]) -> Role:
    """The role that includes all others of these."""
    return max(roles, key=list(Role).index)


def lowest_role(roles: Iterable[Role]) -> Role:
    """The role that all others of these include."""
    return min(roles, key=list(Role).index)


EVERY_WORKSPACE = "*"
"""Stands for all workspaces in the roles of a caller. No workspace can have this name."""


_ENOUGH: Mapping[Permission, frozenset[Role]] = MappingProxyType(
    {
        Permission.READ: frozenset(Role),
        Permission.CONTRIBUTE: frozenset({Role.CONTRIBUTOR, Role.OWNER}),
        Permission.OWN: frozenset({Role.OWNER}),
    }
)

PERMISSIONS_OF_WORKSPACES = frozenset(_ENOUGH)
"""The permissions that depend on the workspace in the path."""


@dataclass(frozen=True)
class RunScope:
    """The one run that a job's token is for."""

    workspace: str
    run_id: str


@dataclass(frozen=True)
class Caller:
    """Who sends a request, and what they may do."""

    name: str
    """The user's name; empty for somebody who is not signed in."""
    is_admin: bool = False
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Name of the workspace to the role there. `EVERY_WORKSPACE` stands for all."""
    scope: RunScope | None = None
    """Set for the token of a job, which may only call routes that are open to jobs."""
    credential: str = ""
    """For the audit log: "token <id>", "session" or "run <id>"."""
    is_restricted: bool = False
    """Whether the token has fewer rights than its user. It cannot create or revoke tokens."""
    expires_at: float | None = None
    """When the token expires. Tokens that are created with it do not live longer."""
    session: str = field(default="", repr=False)
    """The value of the session's cookie, for a browser."""

    @property
    def is_signed_in(self) -> bool:
        return bool(self.name)

    def may(self, permission: Permission, workspace: str = "", open_to_jobs: bool = False) -> bool:
        """Whether this caller has the permission, in this workspace if it depends on one.

        >>> ann = Caller("ann", roles={"vision": Role.CONTRIBUTOR})
        >>> ann.may(Permission.CONTRIBUTE, "vision"), ann.may(Permission.OWN, "vision"), ann.may(Permission.READ, "nlp")
        (True, False, False)
        """
        if permission is Permission.PUBLIC:
            return True
        if not self.is_signed_in:
            return False
        if self.scope is not None:
            return open_to_jobs and workspace == self.scope.workspace
        if permission is Permission.SIGNED_IN or self.is_admin:
            return True
        if permission is Permission.ADMINISTER:
            return False
        return any(self.roles.get(name) in _ENOUGH[permission] for name in (workspace, EVERY_WORKSPACE))


NOBODY = Caller("")
