"""Where a cluster is used from: where its commands run, and how the files of runs reach its nodes and come back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainmaster.engines.plans import write_plans
from trainmaster.engines.slurm.commands import CommandResult, run_here
from trainmaster.engines.slurm.job import Job
from trainmaster.shared.records import TargetRecord


class Site(Protocol):
    """A machine from which jobs are submitted. For every site, the run's folder here shows the state of its job."""

    python: str
    """The Python for agents, if the target names none."""
    on_news: Callable[[], None]
    """Called when new files have arrived."""

    async def run_command(self, command: Sequence[str], stdin: str, seconds: float) -> CommandResult:
        """Runs one of Slurm's commands. Raises NoAnswer or ComputeTargetException."""

    async def user(self) -> int:
        """The id of the user who submits our jobs. Raises NoAnswer."""

    async def bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        """Makes everything that the job needs available to its nodes."""

    def path(self, job: Job, path: Path) -> str:
        """The path on the nodes of what is at `path` here."""

    def follow(self, job: Job) -> None:
        """From now on, files of the job's agents appear here."""

    async def refresh(self, job: Job) -> None:
        """Returns when everything that the job's agents have written so far is here."""

    async def stop(self, job: Job) -> None:
        """Keeps agents whose claims the dispatcher has taken from starting."""

    async def give_up(self, job: Job) -> None:
        """Tells unreachable agents to end."""

    async def forget(self, job: Job) -> dict[str, str]:
        """Removes the files of a finished run from the site. Returns properties for the run."""

    def activity(self, job: Job) -> str:
        """A sentence while files of the job are being uploaded; otherwise empty."""

    async def close(self) -> None:
        """The dispatcher ends; jobs keep running."""


class Sites(Protocol):
    """Finds the site of a target."""

    shares_files: bool
    """Whether the nodes see the workspace's folder under its path."""

    def find(self, target: TargetRecord) -> Site:
        """Returns the same site for targets of the same cluster."""


class Here:
    """This machine is a login node, and the workspace is in a folder that all nodes see."""

    python = sys.executable

    def __init__(self) -> None:
        self.on_news: Callable[[], None] = lambda: None

    async def run_command(self, command: Sequence[str], stdin: str, seconds: float) -> CommandResult:
        return await run_here(command, stdin, seconds)

    async def user(self) -> int:
        return os.getuid()

    async def bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        write_plans(job.nodes, plans)

    def path(self, job: Job, path: Path) -> str:
        return str(path)

    def follow(self, job: Job) -> None:
        pass

    async def refresh(self, job: Job) -> None:
        job.refresh()

    async def stop(self, job: Job) -> None:
        pass

    async def give_up(self, job: Job) -> None:
        job.give_up()

    async def forget(self, job: Job) -> dict[str, str]:
        return {}

    def activity(self, job: Job) -> str:
        return ""

    async def close(self) -> None:
        pass


class OnlyHere:
    """All targets use the cluster of this machine."""

    shares_files = True

    def __init__(self, site: Site | None = None) -> None:
        self._site: Site = site or Here()

    def find(self, target: TargetRecord) -> Site:
        return self._site
