"""What is known of one run while it is driven: its record, its folder, and what users asked of it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs import attempts
from trainmaster.dispatcher.runs.attempt_results import AttemptResults
from trainmaster.dispatcher.runs.marks import apply_mark, mark_of
from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.engines import Ending
from trainmaster.shared.json_files import read_json
from trainmaster.shared.node_limits import find_broken
from trainmaster.shared.records import LIMITS_PROPERTY, RunRecord, Status

log = logging.getLogger("trainmaster.dispatch")


class RunState:
    """The state of one run, in memory and in the store."""

    def __init__(self, record: RunRecord, context: Context, updates: RunUpdates, *, commits_running: bool) -> None:
        """Without `commits_running`, a power cut may take back that the run was Running."""
        self.record = record
        self.folder = context.folder.run(record.id)
        # A future, because waiting for an event would take another task wherever work is waited for.
        self.cancel_request: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.mark = mark_of(record.properties)
        self.is_disk_full = False
        self._store = context.store
        self._updates = updates
        self._commits_running = commits_running
        if record.status is Status.CANCEL_REQUESTED:
            self.request_cancel()

    def request_cancel(self) -> None:
        """A user wants the run to end."""
        if not self.cancel_request.done():
            self.cancel_request.set_result(None)

    @property
    def is_canceled(self) -> bool:
        """Whether a user wants the run to end."""
        return self.cancel_request.done()

    def reload(self) -> None:
        """Reads the record from the store again."""
        self.record = self._store.runs.get(self.record.id) or self.record

    def move(self, to: Status, **changes: Any) -> bool:
        """Moves the run to another state; false if it is in none of the states to `expect`."""
        expect = changes.get("expect")
        if expect is not None and self.record.status not in expect:
            # Only the driver moves the run, except for CancelRequested, which no caller expects.
            return False
        return self.replace(self._updates.move(self.record.id, to, **changes))

    def replace(self, record: RunRecord | None) -> bool:
        """Takes over a record that was just written; false if nothing was written."""
        if record is not None:
            self.record = record
        return record is not None

    def see_running(self, at: float | None = None) -> None:
        """The script has started."""
        if self.record.status is Status.QUEUED:
            # It waited in the queue of its engine, which may report the start late.
            running = read_json(self.folder.node(0) / "running.json") or {}
            at = at or running.get("started_at")
            self.move(Status.STARTING, at=at, expect=(Status.QUEUED,))
        self.move(Status.RUNNING, at=at, expect=(Status.STARTING,), durable=self._commits_running)

    def see_started(self, results: AttemptResults) -> None:
        """Takes the time of the start from the results of the agents, if the start was not reported."""
        if results.started_at is not None:
            self.see_running(at=results.started_at)

    def outcome(self, results: AttemptResults, ending: Ending | None, upload_error: str = "") -> Outcome:
        """How an attempt with these results ended."""
        found = results.outcome(
            ending, cancel_requested=self.is_canceled, disk_full=self.is_disk_full, upload_error=upload_error
        )
        broken = find_broken(self.record.properties.get(LIMITS_PROPERTY, ""), results.results)
        return replace(found, warnings=(*found.warnings, *broken))

    def final_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome as users see it: the error counts the attempts, and a mark takes precedence."""
        error = attempts.with_attempts(outcome.error, outcome.status, self.folder.attempt)
        return apply_mark(replace(outcome, error=error), self.mark)

    def keep_warnings(self, outcome: Outcome) -> None:
        """Adds the warnings of an outcome to the run."""
        if outcome.warnings:
            self._store.runs.add_warnings(self.record.id, *outcome.warnings)
