"""What the one wrapper around every handler asks of the identity, the audit log and the idempotency keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from trainmaster.server.permissions import Caller
from trainmaster.server.table import Route


@dataclass(frozen=True)
class Change:
    """One request that changes something, for the audit log."""

    caller: str
    workspace: str
    method: str
    path: str
    """The path of the route, with the names of its parameters."""
    target: str
    """The path of the request, without its query."""
    operation: str
    status: int
    request_id: str
    client: str
    """The address of the client."""


@dataclass(frozen=True)
class KeptAnswer:
    """The first answer to a request with an idempotency key."""

    status: int
    body: bytes
    media_type: str


class Identity(Protocol):
    """Says who sends a request."""

    async def identify(self, request: Request, route: Route) -> Caller:
        """The caller, or NOBODY without credentials. Raises HttpError for wrong ones and for forged requests."""


class AuditLog(Protocol):
    """Keeps who changed what."""

    async def record(self, change: Change) -> None:
        """Write one entry."""


class KeptAnswers(Protocol):
    """The answers to requests with idempotency keys."""

    async def begin(self, caller: str, key: str, fingerprint: str) -> KeptAnswer | None:
        """The first answer, or None if this is the first request. Raises HttpError 422 if the fingerprint of the
        first request was another, and 409 while the first one is being answered."""

    async def keep(self, caller: str, key: str, answer: KeptAnswer) -> None:
        """Keep the answer to the first request."""

    async def drop(self, caller: str, key: str) -> None:
        """The request failed in a way that may be tried again."""
