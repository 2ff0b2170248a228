"""Slurm's commands, called."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from trainmaster.engines.slurm.options import command_variables
from trainmaster.job.errors import ComputeTargetException

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


CarryOut = Callable[[Sequence[str], str, float], Awaitable[Said]]
"""Runs a command, given what it reads, for so many seconds at most. Raises NoAnswer, or ComputeTargetException."""


class Commands:
    """A few at a time, each with an end."""

    def __init__(self, carry_out: CarryOut) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._carry_out = carry_out

    async def ask(self, *command: str, given: str = "") -> str:
        """What a command prints. Raises NoAnswer or Refused, with its words."""
        async with self._turns:
            said = await self._carry_out(command, given, _PATIENCE_SECONDS)
        if said.code == 0:
            return said.out
        words = " ".join((said.error or said.out).split()) or f"{command[0]} ended with {said.code}"
        raise (NoAnswer if _PASSING.search(words) else Refused)(words)


async def carry_out_here(command: Sequence[str], given: str, seconds: float) -> Said:
    """On this machine."""
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
            hint="Use Trainmaster on a machine from which jobs are submitted (a login node), or name one with login=.",
        ) from None
    try:
        out, error = await asyncio.wait_for(process.communicate(given.encode()), seconds)
    except TimeoutError:
        raise late(command, seconds) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Said(process.returncode or 0, out.decode("utf-8", "replace"), error.decode("utf-8", "replace"))


def late(command: Sequence[str], seconds: float) -> NoAnswer:
    """What is said of a command that takes too long."""
    return NoAnswer(f"{command[0]} did not answer within {seconds:.0f} s")
