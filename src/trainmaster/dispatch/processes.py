"""Our own modules as processes beside the dispatcher: they can be cancelled, and their error comes back as itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmaster.errors import AzureMLException, from_wire


async def run_module(command: Sequence[str], log: Path, variables: Mapping[str, str], given: bytes = b"") -> None:
    """Runs one of our own modules as a process that prints to `log`; its last line of standard error is its error.

    It reads `given` from its standard input.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
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
        raise _error_of(command[0], process.returncode, errors.decode(errors="replace"))


def _error_of(module: str, code: int, text: str) -> AzureMLException:
    lines = text.strip().splitlines()
    with contextlib.suppress(ValueError, IndexError):
        data = json.loads(lines[-1])
        if isinstance(data, dict) and "headline" in data:
            return from_wire(data)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return AzureMLException(f"{module} {how}", cause="\n".join(lines[-10:]))
