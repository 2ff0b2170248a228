"""Runs without a job end with the program that logs to them, even if that program is killed."""

from __future__ import annotations

import asyncio
import time

from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store import Store
from trainmaster.engines.pids import wait_for_pid
from trainmaster.shared.owner import Owner, limit_lease, owner_of
from trainmaster.shared.records import TERMINAL, RunError, Status

_HINT = "End a run with run.complete() or run.fail(), or use it in a 'with' block."


async def end_with(owner: Owner, store: Store, updates: RunUpdates) -> None:
    """Waits until the program has ended, then fails the runs that it has not completed."""
    while owner.lives:
        await wait_for_pid(owner.pid)
    message = (
        f"the program that logged to this run (process {owner.pid} on {owner.host}) ended without completing it\n"
        f"{_HINT}"
    )
    for record in store.runs.list_active():
        if not record.spec and owner_of(record.properties) == owner:
            await updates.bring_in(record.id)
            updates.move(record.id, Status.FAILED, error=RunError("OwnerLost", message))


class Lease:
    """How long a run stays Running without news from its program."""

    def __init__(self, seconds: float) -> None:
        self.renew(seconds)

    def renew(self, seconds: float) -> None:
        """The run stays Running for at least this long."""
        self._seconds = limit_lease(seconds)
        self._end = time.monotonic() + self._seconds

    async def expire(self) -> float:
        """Returns when the lease is over: how many seconds it was renewed for the last time."""
        while (rest := self._end - time.monotonic()) > 0:
            await asyncio.sleep(rest)
        return self._seconds


async def end_with_lease(run_id: str, lease: Lease, store: Store, updates: RunUpdates) -> None:
    """Waits until nobody renews the lease any more, then fails the run if it was not completed."""
    seconds = await lease.expire()
    record = store.runs.get(run_id)
    if record is None or record.status in TERMINAL:
        return
    message = f"the program that logged to this run was not heard of for {seconds:.0f} seconds\n{_HINT}"
    await updates.bring_in(run_id)
    updates.move(run_id, Status.FAILED, error=RunError("OwnerLost", message))
