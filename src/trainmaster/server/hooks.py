"""What the one wrapper around every handler asks of the identity, the audit log and the idempotency keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from trainmaster.server.api.table import Route
from trainmaster.server.identity.audit import Change
from trainmaster.server.identity.counting import Counted
from trainmaster.server.permissions import Caller


@dataclass(frozen=True)
class KeptAnswer:
    """The first answer to a request with an idempotency key."""

    status: int
    body: bytes
    media_type: str


@dataclass(frozen=True)
class Begun:
    """A change that is being carried out."""

    entry: int
    """Its number in the audit log."""
    holder: str
    key: str
    """Empty without an idempotency key."""


class Identity(Protocol):
    """Says who sends a request."""

    async def identify(self, request: Request, route: Route, names: Mapping[str, str]) -> Caller:
        """The caller, or NOBODY without credentials. Raises HttpError for wrong ones and for forged requests."""


class Changes(Protocol):
    """The audit log, and the answers to requests with idempotency keys."""

    async def begin(self, change: Change, holder: str, key: str, request: bytes) -> Begun | KeptAnswer:
        """Note that a change is about to be carried out, or find the first answer to a request with this key.

        `request` tells whether two requests are the same. Raises HttpError 422 if the first request with this key was
        another, and 409 if another server still answers it.
        """

    async def finish(self, begun: Begun, status: int, answer: KeptAnswer | None) -> None:
        """Note the outcome, and keep the answer if there is one; without, the next request with the key tries again."""

    async def begin_counted(self, change: Change) -> Counted:
        """Note that one of many changes is about to be carried out; they share an entry for an hour."""

    def count(self, counted: Counted, status: int) -> bool:
        """Note the outcome of one of many changes, if that needs no more than a count; else call `finish_counted`."""

    async def finish_counted(self, counted: Counted, change: Change, status: int) -> None:
        """Note the outcome of one of many changes."""

    async def maintain(self) -> None:
        """Keep the tables in order, until cancelled."""

    async def refuse(self, change: Change, status: int) -> None:
        """Note that a caller wanted something that the caller may not do."""
