"""The results that the agents of one attempt left, and the outcome that follows from them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.runs.agents import only_serves
from trainmaster.dispatcher.runs.failure_hints import Surroundings
from trainmaster.dispatcher.runs.left_files import find_left_files, warning
from trainmaster.dispatcher.runs.outcome import Outcome, name_process, outcome
from trainmaster.dispatcher.runs.rank_results import with_ranks, write_process_table
from trainmaster.dispatcher.secrets import Secrets
from trainmaster.engines import Ending, Engine, Nodes
from trainmaster.job.agent import result
from trainmaster.job.helper.job_requests import STORAGE_REQUESTS, clear
from trainmaster.launch.counts import rank_names
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json

_LITTLE_ROOM = 1024 * 1024


@dataclass(frozen=True)
class AttemptResults:
    """The results of all nodes; None for a node whose agent was killed before it wrote one."""

    spec: JobSpec
    folder: RunFolder
    results: tuple[Mapping[str, Any] | None, ...]
    folder_stays: bool = True
    """Whether the working folder is on this machine; if not, it is removed with the run's folder on its host."""

    @property
    def started_at(self) -> float | None:
        """When the first process was started."""
        starts = (result["started_at"] for result in self.results if result and result.get("started_at"))
        return min(starts, default=None)

    @property
    def ended_at(self) -> float:
        """When the last agent ended; now, if an agent left no result."""
        ends = [result["ended_at"] if result else time.time() for result in self.results]
        return max(ends, default=time.time())

    @property
    def ended_at_or_now(self) -> float:
        """When the run ended: now, or later if the clock of the agents, which also set the start, is ahead."""
        return max(self.ended_at, time.time())

    @property
    def has_survivors(self) -> bool:
        """Whether some processes could not be ended."""
        return any(result and result.get("survivors") for result in self.results)

    def outcome(
        self, ending: Ending | None, *, cancel_requested: bool, disk_full: bool, upload_error: str = ""
    ) -> Outcome:
        """How the attempt ended, including what only the engine and the dispatcher know."""
        names = rank_names(self.spec)
        found = outcome(
            self.results,
            ending=ending,
            cancel_requested=cancel_requested,
            time_limit=self.spec.max_run_duration_seconds,
            disk_full=disk_full,
            upload_error=upload_error,
            processes=len(names),
            surroundings=Surroundings(self.spec, self.folder.code),
            services={number for number in range(len(self.results)) if only_serves(self.spec, self.folder, number)},
        )
        return name_process(found, names)

    @property
    def left_warnings(self) -> tuple[str, ...]:
        """A warning about files that the script left outside of outputs/ and logs/, if there are any."""
        left = find_left_files(self.results)
        return () if left is None else (warning(left, self.folder.path.name, self.folder_stays),)

    def write_processes(self) -> None:
        """Writes the table of all processes, if the run can have more than one."""
        if self.spec.distribution.kind != "single":
            write_process_table(self.folder, self.results)


async def find_attempt_results(engine: Engine, nodes: Nodes, spec: JobSpec, secrets: Secrets) -> AttemptResults:
    """Reads what the agents left, once all of them are gone.

    First removes secrets from logs and job requests, and ends the processes of an agent that was killed.
    """
    if nodes.folder.secrets.exists():
        await asyncio.to_thread(secrets.scrub, nodes.folder)
    if nodes.folder.job_requests.exists() or (nodes.folder.path / STORAGE_REQUESTS).exists():
        await asyncio.to_thread(clear, str(nodes.folder.path))
    folders = [nodes.folder.node(number) for number in range(nodes.count)]
    for folder in folders:
        # The space that an agent reserved before it was killed.
        (folder / result.PART).unlink(missing_ok=True)
    results = tuple(with_ranks(read_json(folder / "result.json"), folder) for folder in folders)
    if None in results:
        await engine.sweep(nodes)
    return AttemptResults(spec, nodes.folder, results, bool(getattr(engine, "shares_files", True)))


def is_full(folder: Path) -> bool:
    """Whether the disk is almost full."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize < _LITTLE_ROOM
