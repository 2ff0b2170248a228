"""Changes that come many times a second, such as logged values: one entry of the audit log for those of an hour."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainmaster.server.identity.accounts import Clock
from trainmaster.server.identity.audit import AuditLog, Change

_HOUR = 3600.0
Run = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function that uses the database, in a thread."""
_Key = tuple[int, str, str, str, str, str, str]


@dataclass
class Counted:
    """An entry of the audit log that may stand for several requests."""

    key: _Key
    seq: asyncio.Future[int]
    """Its number, once it is written."""
    status: int | None = None
    """The outcome of the first request that has ended."""
    unwritten: int = 0
    """Requests that are not in the entry's count yet."""


class Counting:
    """Writes an entry before the first change of an hour, and counts the others in memory until `flush`.

    A server that is killed loses the last seconds of a count, but never the entry.
    """

    def __init__(self, audit: AuditLog, run: Run, clock: Clock) -> None:
        self._audit = audit
        self._run = run
        self._clock = clock
        self._entries: dict[_Key, Counted] = {}

    async def begin(self, change: Change) -> Counted:
        """The entry for a change that is about to be carried out."""
        key = self._make_key(change)
        found = self._entries.get(key)
        if found is None:
            written = asyncio.ensure_future(self._run(partial(self._audit.open, change)))
            found = self._entries[key] = Counted(key, written)
            written.add_done_callback(lambda done: self._forget_failed(found, done))
        if not found.seq.done():
            # Another request may wait for it as well, if the client of this one leaves.
            await asyncio.shield(found.seq)
        return found

    def count(self, counted: Counted, status: int) -> bool:
        """Note the outcome of a change that only adds to a count in memory. False if `finish` has to note it."""
        is_counted = counted.status is not None and counted.status < 400 and status < 400
        if not is_counted or self._entries.get(counted.key) is not counted:
            return False
        counted.unwritten += 1
        return True

    async def finish(self, counted: Counted, change: Change, status: int) -> None:
        """Note the outcome of a change. One that failed has an entry of its own."""
        if self.count(counted, status):
            return
        if counted.status is None:
            counted.status = status
            if status >= 400:
                self._forget(counted)
            await self._run(partial(self._audit.close, counted.seq.result(), status))
        elif status < 400 and counted.status < 400:
            # Its hour ended meanwhile, and `flush` does not find it any more.
            counted.unwritten += 1
            await self._write([counted])
        else:
            await self._run(partial(self._audit.record, change, status))

    async def flush(self) -> None:
        """Write the counts, and forget the entries of hours that are over."""
        entries = list(self._entries.values())
        hour = self._find_hour()
        for entry in entries:
            if entry.key[0] < hour:
                self._forget(entry)
        await self._write(entries)

    async def _write(self, entries: Sequence[Counted]) -> None:
        taken = {entry.seq.result(): (entry, entry.unwritten) for entry in entries if entry.unwritten}
        if not taken:
            return
        # Taken before the wait, so that nobody else writes them too.
        for entry, _ in taken.values():
            entry.unwritten = 0
        try:
            await self._run(partial(self._audit.add, {seq: count for seq, (_, count) in taken.items()}))
        except BaseException:
            for entry, count in taken.values():
                entry.unwritten += count
            raise

    def _make_key(self, change: Change) -> _Key:
        hour = self._find_hour()
        return hour, change.caller, change.credential, change.method, change.route, change.target, change.address

    def _find_hour(self) -> int:
        return int(self._clock() // _HOUR)

    def _forget(self, counted: Counted) -> None:
        if self._entries.get(counted.key) is counted:
            del self._entries[counted.key]

    def _forget_failed(self, counted: Counted, written: asyncio.Future[int]) -> None:
        if written.cancelled() or written.exception() is not None:
            self._forget(counted)
