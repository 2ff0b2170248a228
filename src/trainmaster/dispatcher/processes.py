"""Modules of Trainmaster as separate processes: they can be cancelled, and their errors are raised here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmaster.job.errors import TrainmasterError, from_wire
from trainmaster.shared.private import open_private

_WORK = {
    "trainmaster.environments": "the process that built the environment",
    "trainmaster.storage.stage": "the process that copied the data",
    "trainmaster.storage.storage_request": "the process that copied the data",
}


class Shortage(TrainmasterError):
    """The machine lacked something for a moment, such as memory: a later attempt may succeed."""


async def run_module(command: Sequence[str], log: Path, variables: Mapping[str, str], given: bytes = b"") -> None:
    """Run a module in a process that prints to `log` and reads `given` from its standard input.

    The last line of its standard error is the error that is raised.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab", opener=open_private) as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=output,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        _, errors = await process.communicate(given)
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if process.returncode:
        error = _error_of(command[0], process.returncode, errors.decode(errors="replace"))
        if process.returncode == os.EX_TEMPFAIL:
            raise Shortage(error.headline, cause=error.cause, hint=error.hint)
        raise error


def _error_of(module: str, code: int, text: str) -> TrainmasterError:
    lines = text.strip().splitlines()
    with contextlib.suppress(ValueError, IndexError):
        data = json.loads(lines[-1])
        if isinstance(data, dict) and "headline" in data:
            return from_wire(data)
    cause = "\n".join(lines[-10:])
    if code >= 0:
        return TrainmasterError(f"{module} ended with {code}", cause=cause)
    return TrainmasterError(
        f"{_WORK.get(module, module)} was killed by {signal.Signals(-code).name}",
        cause=cause,
        hint="Submit again. If nobody killed the process, the machine may have run out of memory.",
    )
