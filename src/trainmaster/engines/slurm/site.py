"""From where a cluster is used: where its commands are called, and how the files of runs come to its nodes and back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainmaster.engines.plans import write_plans
from trainmaster.engines.slurm.commands import Said, carry_out_here
from trainmaster.engines.slurm.job import Job


class Site(Protocol):
    """Whatever the site, the run's folder here shows how its job goes."""

    python: str
    """For agents, where a target names none."""
    news: Callable[[], None]
    """Called when something has come that is worth a look."""

    async def carry_out(self, command: Sequence[str], given: str, seconds: float) -> Said:
        """Calls one of Slurm's commands. Raises NoAnswer, or ComputeTargetException."""

    async def user(self) -> int:
        """Whose jobs ours are. Raises NoAnswer."""

    async def bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        """Sees to it that the nodes find all that the job needs."""

    def path(self, job: Job, path: Path) -> str:
        """Where the nodes find what lies at `path` here."""

    def follow(self, job: Job) -> None:
        """From now on what its agents write is seen here."""

    async def look(self, job: Job) -> None:
        """All that its agents have written up to now is here when this returns."""

    async def stop(self, job: Job) -> None:
        """Agents that have not begun do not begin any more, where the dispatcher has taken their claims."""

    async def give_up(self, job: Job) -> None:
        """Agents that still run, though nobody can reach them, are to end."""

    async def forget(self, job: Job) -> dict[str, str]:
        """The run is over for good; what is worth keeping with it."""

    def doing(self, job: Job) -> str:
        """A sentence while something is on its way; else empty."""

    async def close(self) -> None:
        """The dispatcher ends; jobs go on."""


class Here:
    """This machine is a login node, and the workspace lies in a folder that all nodes see."""

    python = sys.executable

    def __init__(self) -> None:
        self.news: Callable[[], None] = lambda: None

    async def carry_out(self, command: Sequence[str], given: str, seconds: float) -> Said:
        return await carry_out_here(command, given, seconds)

    async def user(self) -> int:
        return os.getuid()

    async def bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        write_plans(job.nodes, plans)

    def path(self, job: Job, path: Path) -> str:
        return str(path)

    def follow(self, job: Job) -> None:
        pass

    async def look(self, job: Job) -> None:
        job.refresh()

    async def stop(self, job: Job) -> None:
        pass

    async def give_up(self, job: Job) -> None:
        job.give_up()

    async def forget(self, job: Job) -> dict[str, str]:
        return {}

    def doing(self, job: Job) -> str:
        return ""

    async def close(self) -> None:
        pass
