"""Slurm's commands, called."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.engines.slurm.options import command_variables
from trainmaster.errors import ComputeTargetException

_PATIENCE_SECONDS = 60.0
_AT_ONCE = 4
# What gets better by waiting.
_PASSING = re.compile(
    r"unable to contact|timed out|connection|connect failure|communication|zero bytes|temporarily|try again|"
    r"not responding|MaxSubmit|backup|unexpected message|slurmctld",
    re.IGNORECASE,
)


class NoAnswer(Exception):
    """Slurm cannot be asked now."""


class Refused(Exception):
    """Slurm was asked and said no."""


@dataclass(frozen=True)
class Said:
    """What a command said."""

    code: int
    out: str
    error: str


class Commands:
    """A few at a time, each with an end."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def ask(self, *command: str, given: str = "") -> str:
        """What a command prints. Raises NoAnswer or Refused, with its words."""
        said = await self._run(command, given)
        if said.code == 0:
            return said.out
        words = " ".join((said.error or said.out).split()) or f"{command[0]} ended with {said.code}"
        raise (NoAnswer if _PASSING.search(words) else Refused)(words)

    async def _run(self, command: Sequence[str], given: str) -> Said:
        async with self._turns:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=command_variables(os.environ),
                )
            except FileNotFoundError:
                raise ComputeTargetException(
                    f"there is no {command[0]} on the PATH of this machine",
                    hint="Use Trainmaster on a machine from which jobs are submitted (a login node).",
                ) from None
            try:
                out, error = await asyncio.wait_for(process.communicate(given.encode()), _PATIENCE_SECONDS)
            except TimeoutError:
                raise NoAnswer(f"{command[0]} did not answer within {_PATIENCE_SECONDS:.0f} s") from None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        return Said(process.returncode or 0, out.decode("utf-8", "replace"), error.decode("utf-8", "replace"))
