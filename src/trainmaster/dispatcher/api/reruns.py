"""Running again what an earlier run did."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.dispatcher.api.runs import RunOperations
from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.accepting import check_priority
from trainmaster.dispatcher.runs.lookup import require_run
from trainmaster.dispatcher.runs.reruns import ORIGIN, Edits, FreshSource, rerun_record
from trainmaster.dispatcher.sweeps import Sweeps
from trainmaster.dispatcher.sweeps.driver import is_sweep
from trainmaster.job.errors import SnapshotException, UserErrorException
from trainmaster.job.script.labels import check_tags
from trainmaster.shared.job_spec import EnvironmentSpec, load_spec
from trainmaster.shared.records import RunRecord
from trainmaster.shared.serialization import from_plain, to_plain
from trainmaster.snapshots.commits import renew_snapshot
from trainmaster.snapshots.uploads import is_digest
from trainmaster.tuning.spec import dump_sweep, load_sweep


class RerunOperations:
    """Running again what an earlier run did."""

    def __init__(self, context: Context, runs: RunOperations, sweeps: Sweeps) -> None:
        self._context = context
        self._store = context.store
        self._runs = runs
        self._sweeps = sweeps

    @operation("runs.rerun")
    async def rerun(
        self,
        run_id: str,
        new_id: str,
        submitted_by: str = "",
        arguments: list[str] | None = None,
        command: list[str] | None = None,
        display_name: str | None = None,
        tags: Mapping[str, Any] | None = None,
        sources: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
        fresh_environment: bool = False,
        source: Mapping[str, Any] | None = None,
        resume: bool = False,
        may_raise_priority: bool = True,
    ) -> RunRecord:
        """Submit the code, packages and settings of a run again, as the new run `new_id`, with other arguments.

        What is not given is as it was: the same snapshot, and exactly the packages that were installed, unless
        `fresh_environment` resolves them anew. `settings` change arguments and settings by their names. `source` is
        another snapshot of the code (`snapshot_id`, `directory`, `properties`). With `resume` the new run continues
        in the working folder of the first one, which must have ended.

        The property `origin` of the new run is the id of the first one. A trial of a sweep is run again on its own,
        and a sweep with all its trials. A server says whether the caller may give it a priority above 0.
        """
        origin = require_run(self._store, run_id)
        known = self._store.runs.get(new_id)
        if known is not None:
            if known.properties.get(ORIGIN) != origin.id:
                raise UserErrorException(f"run '{new_id[:100]}' already exists", hint="Choose another id.")
            return known
        edits = Edits(
            arguments,
            command,
            display_name,
            check_tags(tags) if tags is not None else None,
            dict(settings or {}),
            "" if fresh_environment else self._find_lock(origin),
            from_plain(FreshSource, source, "source") if source else None,
            resume,
        )
        record = rerun_record(origin, new_id, submitted_by, time.time(), edits)
        await self._keep_snapshot(record)
        if not may_raise_priority:
            check_priority(load_spec(record.spec))
        if not is_sweep(origin):
            return await self._runs.submit(to_plain(record), sources)
        return await self._rerun_sweep(origin, record, edits, sources)

    def _find_lock(self, origin: RunRecord) -> str:
        """The packages that a run had; empty if nothing was built for it."""
        environment = load_spec(origin.spec).environment if origin.spec else EnvironmentSpec(user_managed=True)
        if environment.user_managed or environment.is_of_image:
            return ""
        try:
            return self._context.folder.run(origin.id).environment_lock.read_text(encoding="utf-8")
        except FileNotFoundError:
            return environment.lock

    async def _rerun_sweep(
        self, origin: RunRecord, record: RunRecord, edits: Edits, sources: Mapping[str, str] | None
    ) -> RunRecord:
        if edits.arguments is not None or edits.command is not None or edits.settings or edits.source or edits.resumes:
            raise UserErrorException(
                "a sweep is run again as it was",
                cause="Its parameters are the arguments of its trials.",
                hint="Run one of its trials again with other arguments, or submit another sweep.",
            )
        kept = self._store.sweeps.get(origin.id)
        assert kept is not None
        spec = load_sweep(kept.spec, f"the description of sweep {origin.id}")
        # What it continued is in it already.
        text = dump_sweep(replace(spec, custom_run_id="", resume_from=(), resume_child_runs=()))
        return await self._sweeps.submit(to_plain(replace(record, spec="")), text, sources)

    async def _keep_snapshot(self, record: RunRecord) -> None:
        """Keep the code from being removed if the first run is deleted before the new one is stored."""
        folder = self._context.folder.path
        if record.snapshot_id and not is_digest(record.snapshot_id):
            raise SnapshotException(f"'{record.snapshot_id[:100]}' is not the id of a snapshot")
        if record.snapshot_id and not await asyncio.to_thread(renew_snapshot, folder, record.snapshot_id):
            raise SnapshotException(
                f"snapshot {record.snapshot_id} is not in this workspace any more", hint="Submit the folder again."
            )
