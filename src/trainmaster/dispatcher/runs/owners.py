"""Runs without a job end with the program that logs to them, also when that program dies without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmaster.engines.pids import pid_ended
from trainmaster.shared.owner import Owner, owner_of
from trainmaster.shared.records import RunError, Status

if TYPE_CHECKING:
    from trainmaster.dispatcher.runs.scheduler import Scheduler


async def end_with(owner: Owner, scheduler: Scheduler) -> None:
    """Waits for the end of the program; then the runs it has not completed are Failed."""
    while owner.lives:
        await pid_ended(owner.pid)
    message = (
        f"the program that logged to this run (process {owner.pid} on {owner.host}) ended without completing it\n"
        "End a run with run.complete() or run.fail(), or use it in a 'with' block."
    )
    for record in scheduler.store.runs.list_active():
        if not record.spec and owner_of(record.properties) == owner:
            await scheduler.bring_in(record.id)
            scheduler.move(record.id, Status.FAILED, error=RunError("OwnerLost", message))
