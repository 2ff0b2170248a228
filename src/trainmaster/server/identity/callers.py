"""Who sends a request: the one function that looks at tokens and cookies, and says what their bearer may do."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from starlette.requests import Request

from trainmaster.server.api.table import Route
from trainmaster.server.errors import HttpError, refuse
from trainmaster.server.identity.accounts import Account
from trainmaster.server.identity.hosts import AllowedHosts, comes_from_own_page
from trainmaster.server.identity.secret_texts import RUN_TOKEN_PREFIX, TOKEN_PREFIX
from trainmaster.server.identity.service import IdentityService
from trainmaster.server.identity.sessions import is_csrf_token
from trainmaster.server.permissions import (
    EVERY_WORKSPACE,
    NOBODY,
    Caller,
    Permission,
    Role,
    RunScope,
    highest_role,
    lowest_role,
)
from trainmaster.shared.run_tokens import is_genuine, read_run_id

CSRF_HEADER = "x-csrf-token"
_SAFE_METHODS = ("GET", "HEAD")
_REMEMBERED_RUNS = 10_000
_ANYBODY = Caller(
    "(anybody)", roles={EVERY_WORKSPACE: Role.OWNER}, credential="none, by mlflow_open", is_restricted=True
)
"""Whoever uses MLflow's API where it needs no sign-in. No user can have this name."""


@dataclass(frozen=True)
class RunFacts:
    """What the server must know about a run to accept its token."""

    is_active: bool
    submitted_by: str


class RunSource:
    """Where keys of workspaces and facts about runs come from."""

    def __init__(
        self,
        read_key: Callable[[str], bytes | None],
        find_run: Callable[[str, str], Awaitable[RunFacts | None]],
    ) -> None:
        self.read_key = read_key
        self.find_run = find_run


class Callers:
    """Identifies the caller of every request."""

    def __init__(
        self, service: IdentityService, hosts: AllowedHosts, runs: RunSource, cookie: str, is_mlflow_open: bool = False
    ) -> None:
        self._service = service
        self._hosts = hosts
        self._runs = runs
        self._cookie = cookie
        self._is_mlflow_open = is_mlflow_open
        self._ended_runs: set[tuple[str, str]] = set()
        self._look_ups: dict[tuple[str, int], asyncio.Future[Account | None]] = {}

    async def identify(self, request: Request, route: Route, names: Mapping[str, str]) -> Caller:
        """The caller, or NOBODY without credentials. Raises HttpError for wrong ones and for forged requests."""
        if not self._hosts.allows(request.headers.get("host", "")):
            raise refuse(
                421,
                "this server does not answer to that name",
                cause=f"The request is for {request.headers.get('host', '')[:100]!r}.",
                hint="An administrator can add the name to `hosts` in server.json.",
            )
        given = request.headers.get("authorization")
        if given is not None:
            return await self._identify_token(given, names.get("workspace", ""), route.is_mlflow)
        session = request.cookies.get(self._cookie)
        caller = await self._identify_session(request, session) if session else NOBODY
        if caller is NOBODY and self._is_mlflow_open and route.is_mlflow:
            # Programs say nothing of an origin; every browser does.
            if request.method not in _SAFE_METHODS and (
                "origin" in request.headers or "sec-fetch-site" in request.headers
            ):
                check_own_page(request)
            return _ANYBODY
        return caller

    async def _identify_token(self, given: str, workspace: str, may_be_basic: bool) -> Caller:
        kind, _, token = given.partition(" ")
        token = token.strip()
        if kind.lower() == "basic" and may_be_basic:
            token = read_basic(token)
        elif kind.lower() != "bearer":
            raise _wrong_token()
        if token.startswith(RUN_TOKEN_PREFIX):
            return await self._identify_run(token, workspace)
        if not token.startswith(TOKEN_PREFIX):
            raise _wrong_token()
        accounts = self._service.accounts
        account = accounts.find_cached_token(token) or await self._look_up(accounts.find_by_token, token)
        if account is None:
            raise _wrong_token()
        self._service.touch(account.token_id)
        return build_caller(account)

    async def _look_up(self, find: Callable[[str], Account | None], secret: str) -> Account | None:
        """Find an account in the database, once for all requests that need it now.

        A look-up that began before an account was changed is not used by requests that come after the change.
        """
        key = secret, self._service.accounts.generation
        looking = self._look_ups.get(key)
        if looking is None:
            looking = self._look_ups[key] = asyncio.ensure_future(self._service.run(find, secret))
            looking.add_done_callback(lambda _: self._look_ups.pop(key))
        # Another request may wait for it, too, if the client of this one leaves.
        return await asyncio.shield(looking)

    async def _identify_run(self, token: str, workspace: str) -> Caller:
        run_id = read_run_id(token)
        key = await self._service.run(self._runs.read_key, workspace) if workspace else None
        if key is None or not is_genuine(token, key):
            raise _wrong_token()
        facts = await self._find_active_run(workspace, run_id)
        if facts is None:
            raise _wrong_token()
        name = facts.submitted_by or f"run {run_id}"
        return Caller(name, scope=RunScope(workspace, run_id), credential=f"run {run_id}", is_restricted=True)

    async def _find_active_run(self, workspace: str, run_id: str) -> RunFacts | None:
        """The run, unless it has ended. The dispatcher is asked each time, so that the token ends with the run."""
        if (workspace, run_id) in self._ended_runs:
            return None
        facts = await self._runs.find_run(workspace, run_id)
        if facts is not None and facts.is_active:
            return facts
        if facts is not None:
            # A run that has ended never runs again.
            if len(self._ended_runs) >= _REMEMBERED_RUNS:
                self._ended_runs.clear()
            self._ended_runs.add((workspace, run_id))
        return None

    async def _identify_session(self, request: Request, session: str) -> Caller:
        accounts = self._service.accounts
        account = accounts.find_cached_session(session) or await self._look_up(accounts.find_by_session, session)
        if account is None:
            # Not an error: whoever has an old cookie must be able to sign in again.
            return NOBODY
        if request.method not in _SAFE_METHODS:
            check_own_page(request)
            if not is_csrf_token(session, request.headers.get(CSRF_HEADER, "")):
                raise _refuse_forged("The header X-CSRF-Token is missing or wrong.")
        return build_caller(account, session)


def check_own_page(request: Request) -> None:
    """Refuse a request that a page of another site may have sent."""
    headers = request.headers
    if not comes_from_own_page(headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site")):
        raise _refuse_forged("The browser does not say that it comes from a page of this server.")


@lru_cache(maxsize=4096)
def build_caller(account: Account, session: str = "") -> Caller:
    """What an account may do: the rights of the user, as far as the scope of the token allows them."""
    user_roles = {workspace: highest_role(Role(role) for role in roles) for workspace, roles in account.roles.items()}
    scope = account.scope
    user = Caller(account.user, credential=account.credential, expires_at=account.expires_at)
    if scope.workspace is None and scope.role is None:
        return replace(user, is_admin=account.is_admin, roles=user_roles, session=session)
    if account.is_admin:
        user_roles = {EVERY_WORKSPACE: Role.OWNER}
    if scope.workspace is not None:
        user_roles = _restrict_to(scope.workspace, user_roles)
    if scope.role is not None:
        user_roles = {name: lowest_role((role, Role(scope.role))) for name, role in user_roles.items()}
    caller = replace(user, roles=user_roles, is_restricted=True)
    if scope.run_id is None:
        return caller
    if not caller.may(Permission.CONTRIBUTE, scope.workspace or ""):
        raise refuse(403, "you may not do this", cause="The user of this token may no longer run anything there.")
    run_scope = RunScope(scope.workspace or "", scope.run_id)
    return replace(user, scope=run_scope, is_restricted=True)


def read_basic(given: str) -> str:
    """The password, which is a token: MLflow's clients send it this way. The user name is not used."""
    try:
        _, _, password = base64.b64decode(given, validate=True).decode().partition(":")
    except ValueError:
        raise _wrong_token() from None
    return password


def _restrict_to(workspace: str, roles: Mapping[str, Role]) -> dict[str, Role]:
    found = [roles[name] for name in (workspace, EVERY_WORKSPACE) if name in roles]
    return {workspace: highest_role(found)} if found else {}


def _wrong_token() -> HttpError:
    # The same answer for unknown, revoked and expired tokens: it tells nothing about which exist.
    return refuse(
        401,
        "the token is not valid",
        hint="Sign in again: trainmaster login SERVER. A new token comes from an administrator.",
        WWW_Authenticate='Bearer error="invalid_token"',
    )


def _refuse_forged(cause: str) -> HttpError:
    return refuse(403, "the request was refused", cause=cause, hint="Reload the page and try again.")
