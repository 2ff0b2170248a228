"""One administrator by one token: the server's identity until it has users."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from starlette.requests import Request

from trainmaster.job.agent import durable
from trainmaster.server.errors import refuse
from trainmaster.server.permissions import NOBODY, Caller
from trainmaster.server.settings import Root
from trainmaster.server.table import Route


class FirstToken:
    """Accepts the administrator's token."""

    def __init__(self, root: Root) -> None:
        self._digest = root.administrator.read_text().strip()

    async def identify(self, request: Request, route: Route) -> Caller:
        """The administrator, or nobody."""
        given = request.headers.get("authorization", "")
        if not given:
            return NOBODY
        kind, _, token = given.partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(digest_token(token), self._digest):
            raise refuse(401, "the token is not valid", hint="Sign in again.", WWW_Authenticate="Bearer")
        return Caller("admin", is_admin=True)


def digest_token(token: str) -> str:
    """The SHA-256 of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def make_token(root: Root) -> str:
    """Create the administrator's token, and keep only its digest."""
    token = f"tm_{secrets.token_urlsafe(32)}"
    durable.write(root.administrator, f"{digest_token(token)}\n".encode())
    return token
