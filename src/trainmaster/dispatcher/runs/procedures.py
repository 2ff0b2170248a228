"""How closely the states of a run are followed: state by state, or with as few writes as possible for trials."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs import files
from trainmaster.dispatcher.runs.attempt_results import AttemptResults
from trainmaster.dispatcher.runs.datasets import register_outputs
from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.dispatcher.runs.preparing import upload_data
from trainmaster.dispatcher.runs.state import RunState
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.engines import Ending
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import has_data
from trainmaster.shared.records import Status

log = logging.getLogger("trainmaster.dispatch")

# A trial that takes no longer than this is never seen Running.
_BRIEF_SECONDS = 0.1

# Errors that waiting does not resolve: a script may have removed or replaced the folders of its own run.
HOPELESS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP})


@dataclass(frozen=True)
class EndedJob:
    """A run whose processes are gone and which is about to get its terminal state."""

    state: RunState
    results: AttemptResults
    ending: Ending | None
    """What the engine knows about the end."""
    facts: Mapping[str, str]
    """Properties that the engine gives to the run."""

    def outcome(self, upload_error: str = "") -> Outcome:
        """How the run ended, with a warning about files that the script left outside of its outputs."""
        found = self.state.outcome(self.results, self.ending, upload_error)
        return replace(found, warnings=(*found.warnings, *self.results.left_warnings))


class Procedure(Protocol):
    """How a run is brought through its states."""

    commits_running: bool
    """Whether Running is flushed to disk by itself."""
    tell_after_seconds: float
    """How long the processes have to run before their agent reports it."""

    async def end(self, job: EndedJob, context: Context, updates: RunUpdates) -> None:
        """Stores everything that the run left, and only then its terminal state. May be repeated."""


class FullProcedure:
    """Writes and announces every state."""

    commits_running = True
    tell_after_seconds = 0.0

    async def end(self, job: EndedJob, context: Context, updates: RunUpdates) -> None:
        """Finalizing, then one step after the other."""
        state, results, spec = job.state, job.results, job.results.spec
        run_id = state.record.id
        state.see_started(results)
        state.move(Status.FINALIZING, expect=(Status.STARTING, Status.RUNNING))
        upload_error = await upload_data(state.record, spec, context)
        files.collect(state.folder)
        await updates.bring_in(run_id)
        if job.facts:
            context.store.runs.add_properties(run_id, job.facts)
        results.write_processes()
        await flush_files(state.folder)
        # No await from here to the end: a mark is either applied or comes too late.
        own = job.outcome(upload_error)
        final = state.final_outcome(own)
        state.keep_warnings(final)
        if own.status is final.status is Status.COMPLETED:
            register_outputs(run_id, spec, context.store)
        state.move(final.status, error=final.error, at=results.ended_at_or_now)


class TrialProcedure:
    """For trials of a sweep: writes fewer states, because there are many short runs.

    The run ends in the same state, with the same records, as with `FullProcedure`.
    """

    commits_running = False
    tell_after_seconds = _BRIEF_SECONDS

    async def end(self, job: EndedJob, context: Context, updates: RunUpdates) -> None:
        """One transaction for the end, unless there are data to upload or there is too much to read."""
        if job.facts or has_data(job.results.spec) or not await self._end_at_once(job, updates):
            await FullProcedure().end(job, context, updates)

    async def _end_at_once(self, job: EndedJob, updates: RunUpdates) -> bool:
        state, results = job.state, job.results
        files.collect(state.folder)
        results.write_processes()
        await flush_files(state.folder)
        final = state.final_outcome(job.outcome())
        started = results.started_at
        changes = {} if started is None or state.record.started_at else {"started_at": started}
        at = results.ended_at_or_now
        return state.replace(
            updates.finish(state.record.id, final.status, at, final.warnings, error=final.error, **changes)
        )


async def flush_files(folder: RunFolder) -> None:
    """Flushes the files of a run to disk, which is done before the run counts as ended."""
    try:
        await asyncio.to_thread(files.flush, folder)
    except OSError as error:
        if error.errno not in HOPELESS:
            raise
        log.warning("run %s: its files may be lost in a power cut: %s", folder.path.name, error)
