"""Runs without a job end with the program that logs to them, even if that program is killed."""

from __future__ import annotations

from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.store import Store
from trainmaster.engines.pids import wait_for_pid
from trainmaster.shared.owner import Owner, owner_of
from trainmaster.shared.records import RunError, Status


async def end_with(owner: Owner, store: Store, updates: RunUpdates) -> None:
    """Waits until the program has ended, then fails the runs that it has not completed."""
    while owner.lives:
        await wait_for_pid(owner.pid)
    message = (
        f"the program that logged to this run (process {owner.pid} on {owner.host}) ended without completing it\n"
        "End a run with run.complete() or run.fail(), or use it in a 'with' block."
    )
    for record in store.runs.list_active():
        if not record.spec and owner_of(record.properties) == owner:
            await updates.bring_in(record.id)
            updates.move(record.id, Status.FAILED, error=RunError("OwnerLost", message))
