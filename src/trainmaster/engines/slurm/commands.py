"""Slurm's commands."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from trainmaster.engines.slurm.options import command_variables
from trainmaster.job.errors import ComputeTargetException

_TIMEOUT_SECONDS = 60.0
_AT_ONCE = 4
# Failures that are worth a retry.
_TEMPORARY = re.compile(
    r"unable to contact|timed out|connection|connect failure|communication|zero bytes|temporarily|try again|"
    r"not responding|MaxSubmit|backup|unexpected message|slurmctld",
    re.IGNORECASE,
)


class NoAnswer(Exception):
    """Slurm does not answer now."""


class Refused(Exception):
    """Slurm refused a command."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code and output of a command."""

    code: int
    out: str
    error: str


RunCommand = Callable[[Sequence[str], str, float], Awaitable[CommandResult]]
"""Runs a command with this standard input and timeout. Raises NoAnswer or ComputeTargetException."""


class Commands:
    """Runs a few commands at a time, each with a timeout."""

    def __init__(self, run_command: RunCommand) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._run_command = run_command

    async def run(self, *command: str, stdin: str = "") -> str:
        """Returns what a command prints. Raises NoAnswer or Refused, with the command's message."""
        async with self._turns:
            result = await self._run_command(command, stdin, _TIMEOUT_SECONDS)
        if result.code == 0:
            return result.out
        message = " ".join((result.error or result.out).split()) or f"{command[0]} ended with {result.code}"
        raise (NoAnswer if _TEMPORARY.search(message) else Refused)(message)


async def run_here(command: Sequence[str], stdin: str, seconds: float) -> CommandResult:
    """Runs a command on this machine."""
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
        out, error = await asyncio.wait_for(process.communicate(stdin.encode()), seconds)
    except TimeoutError:
        raise timeout_error(command, seconds) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return CommandResult(process.returncode or 0, out.decode("utf-8", "replace"), error.decode("utf-8", "replace"))


def timeout_error(command: Sequence[str], seconds: float) -> NoAnswer:
    """The error for a command that takes too long."""
    return NoAnswer(f"{command[0]} did not answer within {seconds:.0f} s")
