"""Writes changes of runs to the store, then announces them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.journals import Ingest
from trainmaster.dispatcher.runs.watchers import Watchers
from trainmaster.shared.records import ACTIVE, TERMINAL, RunError, RunQuery, RunRecord, Status

log = logging.getLogger("trainmaster.dispatch")


class RunUpdates:
    """Moves runs between states and reads their journals."""

    def __init__(self, context: Context, watchers: Watchers) -> None:
        self._folder = context.folder
        self._store = context.store
        self._watchers = watchers
        self._changes = context.changes
        self._journals = Ingest(context.store)
        self._errors: dict[str, str] = {}
        """Run id to the error with which reading its journals last failed."""

    # States

    def move(self, run_id: str, to: Status, **changes: Any) -> RunRecord | None:
        """One guarded change of state. None if the run was not in a state that allows it."""
        if to in TERMINAL:
            self.end_children(run_id, to)
        at = changes.pop("at", None) or time.time()
        return self._tell(self._store.runs.move(run_id, to, at=at, **changes))

    def finish(self, run_id: str, to: Status, at: float, warnings: Sequence[str], **changes: Any) -> RunRecord | None:
        """Writes the rest of a run's journals and its terminal state in one transaction.

        Returns None if the journals are too long for that, or the run has ended already.
        """
        batches = self._journals.rest(run_id, self._folder.run(run_id))
        if batches is None:
            return None
        self.end_children(run_id, to)
        if batches:
            self._changes.note(run_id, "metrics")
        return self._tell(
            self._store.journals.finish_run(run_id, to, at=at, batches=batches, warnings=warnings, **changes)
        )

    def announce(self, run_id: str) -> None:
        """Tells that a run is in another state, which somebody else has written."""
        self._tell(self._store.runs.get(run_id))

    def _tell(self, record: RunRecord | None) -> RunRecord | None:
        if record is not None:
            log.info("run %s is %s", record.id, record.status)
            self._watchers.tell(record)
        return record

    def end_children(self, run_id: str, to: Status) -> None:
        """Ends the children that have no job.

        They end before their parent, so that a dispatcher that is killed in between leaves none behind.
        """
        if not self._store.runs.has_active_children(run_id):
            return
        query = RunQuery(
            parent_id=run_id, recursive=True, include_children=True, statuses=tuple(map(str, ACTIVE)), limit=100_000
        )
        error = None
        if to is Status.FAILED:
            error = RunError("ParentFailed", f"the parent run {run_id} failed before this run was completed")
        for found in self._store.runs.find(query):
            # `find` leaves out the specification.
            child = self._store.runs.get(found.id)
            if child is not None and not child.spec:
                ended = self._store.runs.move(child.id, to, at=time.time(), error=error)
                if ended is not None:
                    self._watchers.tell(ended)

    # Journals

    def begin(self, run_id: str) -> None:
        """Notes that a run is new, so that the store need not be asked how far its journals were read."""
        self._journals.begin(run_id)

    async def bring_in(self, run_id: str) -> None:
        """Brings everything a run has written to its journals into the store."""
        if await self._journals.bring_in(run_id, self._folder.run(run_id)):
            self._changes.note(run_id, "metrics")
        self._watchers.tell_report(run_id)
        # A journal may have contained the end of a child.
        for watched in self._watchers.watched_without_job:
            record = self._store.runs.get(watched)
            if record is not None and record.status in TERMINAL:
                self._watchers.tell(record)

    async def bring_in_or_log(self, run_id: str) -> None:
        """Like `bring_in`, but logs an error, the first time it occurs, instead of raising it."""
        try:
            await self.bring_in(run_id)
            self._errors.pop(run_id, None)
        except Exception as error:
            if repr(error) != self._errors.get(run_id):
                self._errors[run_id] = repr(error)
                log.exception("run %s: its journals cannot be read for now", run_id)

    def forget(self, run_id: str) -> None:
        """Drops what is remembered of a run that has ended."""
        self._journals.forget(run_id)
        self._errors.pop(run_id, None)

    def close(self) -> None:
        """Stops reading journals."""
        self._journals.close()
