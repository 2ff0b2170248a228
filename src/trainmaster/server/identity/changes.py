"""Changes on the way through the server: into the audit log before and after, and once per idempotency key."""

from __future__ import annotations

import asyncio
import contextlib

from trainmaster.server.errors import refuse
from trainmaster.server.hooks import Begun, KeptAnswer
from trainmaster.server.identity.audit import Change
from trainmaster.server.identity.counting import Counted
from trainmaster.server.identity.idempotency import (
    LARGEST_ANSWER,
    Answer,
    Claimed,
    OtherRequest,
    Outcome,
)
from trainmaster.server.identity.service import IdentityService

_RENEW_SECONDS = 10.0
_CLEAN_SECONDS = 3600.0
_DAY = 86400.0
_WAIT_SECONDS = 60.0
"""How long a request waits for one with the same key that this server is carrying out."""


class AuditedChanges:
    """Implements `hooks.Changes` with the server's database: one short transaction before a change, one after it."""

    def __init__(self, service: IdentityService, audit_days: float) -> None:
        self._service = service
        self._audit_days = audit_days
        self._running: dict[tuple[str, str], asyncio.Event] = {}

    async def begin(self, change: Change, holder: str, key: str, request: bytes) -> Begun | KeptAnswer:
        """See `hooks.Changes`."""
        if not key:
            return await self._service.run(self._begin, change, holder)
        while (running := self._running.get((holder, key))) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.wait(), _WAIT_SECONDS)
                continue
            raise _refuse_for_now()
        ended = self._running[holder, key] = asyncio.Event()
        begun = False
        try:
            outcome = await self._service.run(self._claim, change, holder, key, request)
            begun = isinstance(outcome, Begun)
        finally:
            if not begun:
                self._running.pop((holder, key), None)
                ended.set()
        if isinstance(outcome, Begun):
            return outcome
        if isinstance(outcome, Answer):
            return KeptAnswer(outcome.status, outcome.body, outcome.headers.decode())
        if isinstance(outcome, OtherRequest):
            raise refuse(
                422,
                "the idempotency key was used for another request",
                hint="Use a new key for every change, and the same key only to send the same request again.",
            )
        raise _refuse_for_now()

    async def finish(self, begun: Begun, status: int, answer: KeptAnswer | None) -> None:
        """See `hooks.Changes`."""
        try:
            await self._service.run(self._finish, begun, status, answer)
        finally:
            ended = self._running.pop((begun.holder, begun.key), None)
            if ended is not None:
                ended.set()

    async def refuse(self, change: Change, status: int) -> None:
        """See `hooks.Changes`."""
        await self._service.run(self._service.audit.record, change, status)

    async def begin_counted(self, change: Change) -> Counted:
        """See `hooks.Changes`."""
        return await self._service.counting.begin(change)

    def count(self, counted: Counted, status: int) -> bool:
        """See `hooks.Changes`."""
        return self._service.counting.count(counted, status)

    async def finish_counted(self, counted: Counted, change: Change, status: int) -> None:
        """See `hooks.Changes`."""
        await self._service.counting.finish(counted, change, status)

    async def maintain(self) -> None:
        """Renew claims, write counts, and delete what is old, until cancelled."""
        loop = asyncio.get_running_loop()
        cleaned = float("-inf")
        try:
            while True:
                await self._service.run(self._service.keys.renew)
                await self._service.counting.flush()
                if loop.time() - cleaned > _CLEAN_SECONDS:
                    cleaned = loop.time()
                    await self._service.run(self._clean)
                await asyncio.sleep(_RENEW_SECONDS)
        finally:
            await self._service.counting.flush()

    def _begin(self, change: Change, holder: str) -> Begun:
        with self._service.database.write_lazily() as connection:
            return Begun(self._service.audit.begin(connection, change), holder, "")

    def _claim(self, change: Change, holder: str, key: str, request: bytes) -> Begun | Outcome:
        with self._service.database.write_lazily() as connection:
            outcome = self._service.keys.claim(connection, holder, key, request)
            if isinstance(outcome, Claimed):
                return Begun(self._service.audit.begin(connection, change), holder, key)
            return outcome

    def _finish(self, begun: Begun, status: int, answer: KeptAnswer | None) -> None:
        keys = self._service.keys
        with self._service.database.write_lazily() as connection:
            self._service.audit.finish(connection, begun.entry, status)
            if not begun.key:
                return
            if answer is None or len(answer.body) > LARGEST_ANSWER:
                keys.release(connection, begun.holder, begun.key)
            else:
                kept = Answer(answer.status, answer.media_type.encode(), answer.body)
                keys.keep(connection, begun.holder, begun.key, kept)

    def _clean(self) -> None:
        self._service.keys.remove_old()
        self._service.audit.remove_old(self._audit_days * _DAY)


def _refuse_for_now() -> Exception:
    return refuse(
        409,
        "the same request is still being carried out",
        hint="Send it again with the same idempotency key in a second.",
        Retry_After="1",
    )
