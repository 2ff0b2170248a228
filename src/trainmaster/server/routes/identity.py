"""Users, tokens, members of workspaces, and the audit log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from trainmaster.server.api.table import API, WORKSPACE, Route
from trainmaster.server.call import Call
from trainmaster.server.errors import refuse
from trainmaster.server.identity.accounts import Scope
from trainmaster.server.identity.audit import LARGEST_PAGE, Entry
from trainmaster.server.identity.members import Member
from trainmaster.server.identity.sessions import LINK_MINUTES, derive_csrf_token
from trainmaster.server.identity.tokens import DEFAULT_DAYS, Token, no_token
from trainmaster.server.identity.users import User
from trainmaster.server.permissions import Permission

RoleName = Literal["reader", "contributor", "owner"]


@dataclass(frozen=True)
class MeAnswer:
    """Who the caller is."""

    user: str
    is_admin: bool
    roles: Mapping[str, str]
    """Workspace to role; `*` stands for all workspaces."""
    credential: str
    """What the caller has shown: a token and its id, or a session."""
    expires_at: float | None
    csrf_token: str
    """For the header X-CSRF-Token of a browser's changes; empty for tokens, which need none."""


@dataclass(frozen=True)
class UserAnswer:
    """A user of the server."""

    name: str
    is_admin: bool
    created_at: float
    subject: str | None
    """Who the user is at the OpenID Connect provider."""


@dataclass(frozen=True)
class UsersAnswer:
    """The users of the server."""

    users: tuple[UserAnswer, ...]


@dataclass(frozen=True)
class TokenAnswer:
    """A token, without its text."""

    id: str
    user: str
    label: str
    created_at: float
    expires_at: float | None
    last_used_at: float | None
    revoked_at: float | None
    workspace: str | None
    role: str | None
    run_id: str | None


@dataclass(frozen=True)
class TokensAnswer:
    """Tokens, the newest first."""

    tokens: tuple[TokenAnswer, ...]


@dataclass(frozen=True)
class NewTokenAnswer:
    """A new token, and its text, which cannot be shown again."""

    token: str
    description: TokenAnswer


@dataclass(frozen=True)
class LinkAnswer:
    """A link that signs a browser in, once."""

    url: str
    expires_in_seconds: int


@dataclass(frozen=True)
class MemberAnswer:
    """A user with a role in a workspace."""

    user: str
    role: str
    is_by_group: bool


@dataclass(frozen=True)
class MembersAnswer:
    """The members of a workspace."""

    members: tuple[MemberAnswer, ...]


@dataclass(frozen=True)
class AuditEntryAnswer:
    """One change, or one that was refused."""

    seq: int
    at: float
    caller: str
    credential: str
    method: str
    route: str
    operation: str
    workspace: str
    target: str
    request_id: str
    address: str
    status: int | None
    """The status of the answer; null if the server died before there was one."""
    count: int
    """How many requests it stands for. Uploads of contents and of logged values have one entry an hour."""


@dataclass(frozen=True)
class AuditAnswer:
    """Entries of the audit log, the newest first."""

    entries: tuple[AuditEntryAnswer, ...]
    before: int | None
    """Give it as `before` for the next page; null after the last one."""


async def describe_caller(call: Call) -> MeAnswer:
    """Who the caller is."""
    caller = call.caller
    csrf_token = derive_csrf_token(caller.session) if caller.session else ""
    return MeAnswer(caller.name, caller.is_admin, dict(caller.roles), caller.credential, caller.expires_at, csrf_token)


async def list_users(call: Call) -> UsersAnswer:
    """All users."""
    users = await call.parts.identity.run(call.parts.identity.users.list)
    return UsersAnswer(tuple(_describe_user(user) for user in users))


async def add_user(call: Call, name: str, is_admin: bool = False, subject: str | None = None) -> UserAnswer:
    """Adds a user, who has no token and no role yet."""
    users = call.parts.identity.users
    return _describe_user(await call.parts.identity.run(users.add, name, is_admin=is_admin, subject=subject))


async def get_user(call: Call, user: str) -> UserAnswer:
    """One user."""
    return _describe_user(await call.parts.identity.run(call.parts.identity.users.get, user))


async def change_user(call: Call, user: str, is_admin: bool) -> UserAnswer:
    """Makes a user an administrator, or no longer one."""
    return _describe_user(await call.parts.identity.run(call.parts.identity.users.change, user, is_admin=is_admin))


async def remove_user(call: Call, user: str) -> None:
    """Removes a user with all tokens, roles and sessions."""
    await call.parts.identity.run(call.parts.identity.users.remove, user)


async def create_link(call: Call, user: str) -> LinkAnswer:
    """A link that signs a browser in as this user, once, within minutes."""
    code = await call.parts.identity.run(call.parts.identity.sessions.create_link, user)
    address = call.parts.sign_in.make_address(call.request.headers["host"])
    return LinkAnswer(f"{address}/login#code={code}", LINK_MINUTES * 60)


async def list_tokens(call: Call, user: str | None = None) -> TokensAnswer:
    """The caller's tokens; for administrators those of all users, or of one."""
    if not call.caller.is_admin and user not in (None, call.caller.name):
        raise refuse(403, "you may not see the tokens of other users")
    wanted = user if call.caller.is_admin else call.caller.name
    tokens = await call.parts.identity.run(call.parts.identity.tokens.list, wanted)
    return TokensAnswer(tuple(_describe_token(token) for token in tokens))


async def create_token(
    call: Call,
    label: str = "",
    days: float = DEFAULT_DAYS,
    workspace: str | None = None,
    role: RoleName | None = None,
    run_id: str | None = None,
    user: str | None = None,
) -> NewTokenAnswer:
    """Creates a token for the caller, or by an administrator for another user. 0 days: it does not expire.

    A token never has more rights than its user has at the moment of its use, and does not outlive the token that
    created it.
    """
    _check_manages_tokens(call)
    if user not in (None, call.caller.name) and not call.caller.is_admin:
        raise refuse(403, "you may not create tokens for other users")
    made, text = await call.parts.identity.run(
        call.parts.identity.tokens.create,
        user or call.caller.name,
        label=label,
        days=days or None,
        expires_at=None if call.caller.session else call.caller.expires_at,
        scope=Scope(workspace, role, run_id),
        token_id=_derive_id(call),
    )
    return NewTokenAnswer(text, _describe_token(made))


async def revoke_token(call: Call, token_id: str) -> TokenAnswer:
    """Ends a token of the caller, or by an administrator of any user, for ever."""
    _check_manages_tokens(call)
    tokens = call.parts.identity.tokens
    found = await call.parts.identity.run(tokens.get, token_id)
    if found.user != call.caller.name and not call.caller.is_admin:
        # As if it did not exist.
        raise no_token(token_id)
    return _describe_token(await call.parts.identity.run(tokens.revoke, token_id))


async def list_members(call: Call) -> MembersAnswer:
    """The users who have a role in the workspace."""
    members = await call.parts.identity.run(call.parts.identity.members.list, call.workspace.name)
    return MembersAnswer(tuple(_describe_member(member) for member in members))


async def grant_role(call: Call, user: str, role: RoleName) -> MemberAnswer:
    """Gives a user a role in the workspace."""
    members = call.parts.identity.members
    return _describe_member(await call.parts.identity.run(members.grant, call.workspace.name, user, role))


async def revoke_role(call: Call, user: str) -> None:
    """Takes the role away that was granted to a user. Those of groups stay."""
    await call.parts.identity.run(call.parts.identity.members.revoke, call.workspace.name, user)


async def read_audit(call: Call, before: int | None = None, limit: int = 100, user: str | None = None) -> AuditAnswer:
    """What was changed, by whom: the whole server, or the workspace in the path."""
    workspace = call.names.get("workspace")
    limit = max(1, min(limit, LARGEST_PAGE))
    log = call.parts.identity.audit
    await call.parts.identity.counting.flush()
    entries = await call.parts.identity.run(log.read, workspace=workspace, caller=user, before=before, limit=limit)
    following = entries[-1].seq if len(entries) == limit else None
    return AuditAnswer(tuple(_describe_entry(entry) for entry in entries), following)


def _check_manages_tokens(call: Call) -> None:
    if call.caller.is_restricted:
        raise refuse(
            403,
            "this token cannot manage tokens",
            cause="It has fewer rights than its user.",
            hint="Use a token without a scope, or sign in with a browser.",
        )


def _derive_id(call: Call) -> str:
    """The id of the new token: the same for a repeated request, so that it replaces the one whose text was lost."""
    key = call.request.headers.get("idempotency-key", "")
    return hashlib.sha256(f"{call.caller.name}\0{key}".encode()).hexdigest()[:16] if key else ""


def _describe_user(user: User) -> UserAnswer:
    return UserAnswer(user.name, user.is_admin, user.created_at, user.subject)


def _describe_token(token: Token) -> TokenAnswer:
    return TokenAnswer(
        token.id,
        token.user,
        token.label,
        token.created_at,
        token.expires_at,
        token.last_used_at,
        token.revoked_at,
        token.scope.workspace,
        token.scope.role,
        token.scope.run_id,
    )


def _describe_member(member: Member) -> MemberAnswer:
    return MemberAnswer(member.user, str(member.role), member.is_by_group)


def _describe_entry(entry: Entry) -> AuditEntryAnswer:
    return AuditEntryAnswer(**entry.to_plain())


def identity_rows() -> Iterator[Route]:
    """The routes of this module."""
    signed_in, admin = Permission.SIGNED_IN, Permission.ADMINISTER
    users, tokens, members = f"{API}/users", f"{API}/tokens", f"{WORKSPACE}/members"
    yield Route("GET", f"{API}/me", describe_caller, signed_in, "Who you are", "users")
    yield Route("GET", users, list_users, admin, "All users", "users")
    yield Route("POST", users, add_user, admin, "Add a user", "users")
    yield Route("GET", f"{users}/{{user}}", get_user, admin, "One user", "users")
    yield Route("PATCH", f"{users}/{{user}}", change_user, admin, "Change a user", "users")
    yield Route("DELETE", f"{users}/{{user}}", remove_user, admin, "Remove a user", "users")
    yield Route(
        "POST",
        f"{users}/{{user}}/sign-in-link",
        create_link,
        admin,
        "A link that signs a browser in",
        "users",
        secret_answer=True,
    )
    yield Route("GET", tokens, list_tokens, signed_in, "Your tokens", "tokens")
    yield Route("POST", tokens, create_token, signed_in, "Create a token", "tokens", secret_answer=True)
    yield Route("DELETE", f"{tokens}/{{token_id}}", revoke_token, signed_in, "Revoke a token", "tokens")
    yield Route("GET", members, list_members, Permission.READ, "The members of the workspace", "members")
    yield Route("PUT", f"{members}/{{user}}", grant_role, Permission.OWN, "Give a user a role", "members")
    yield Route("DELETE", f"{members}/{{user}}", revoke_role, Permission.OWN, "Take a role away", "members")
    yield Route("GET", f"{API}/audit", read_audit, admin, "What was changed on the server", "audit")
    yield Route("GET", f"{WORKSPACE}/audit", read_audit, Permission.OWN, "What was changed in the workspace", "audit")
