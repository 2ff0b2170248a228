"""Delivery by a command of the dispatcher's machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Any

from trainmaster.dispatcher.notifications.addresses import DeliveryError

_SECONDS = 60.0
_SHOWN = 500
_LONGEST_OUTPUT = 64_000


def make_variables(notification_id: str, message: dict[str, Any]) -> dict[str, str]:
    """What the command gets in its environment, beside the JSON on standard input."""
    run = message["run"]
    # None of them begins with TRAINMASTER_: the command must not be taken for a process of the run.
    return {
        "NOTIFICATION_ID": notification_id,
        "NOTIFICATION_EVENT": str(message["event"]),
        "NOTIFICATION_WORKSPACE": str(message["workspace"]),
        "NOTIFICATION_RUN": str(run["id"]),
        "NOTIFICATION_NAME": str(run["display_name"]),
        "NOTIFICATION_EXPERIMENT": str(run["experiment"]),
        "NOTIFICATION_STATUS": str(run["status"]),
    }


async def send(command: str, variables: dict[str, str], body: bytes, seconds: float = _SECONDS) -> None:
    """Runs the command in a shell. An error if it fails or takes too long; then all its processes are ended."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **{name: value.replace("\0", "") for name, value in variables.items()}},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            output = await _talk(process, body)
            code = await process.wait()
    except TimeoutError:
        raise DeliveryError(f"the command did not end within {seconds:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code != 0:
        said = output.decode("utf-8", "replace").strip()[-_SHOWN:]
        raise DeliveryError(f"the command ended with {code}" + (f": {said}" if said else ""))


async def _talk(process: asyncio.subprocess.Process, body: bytes) -> bytes:
    """Passes the JSON on and reads the output, of which only the end is kept."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(body)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.drain()
    process.stdin.close()
    output = b""
    while part := await process.stdout.read(_LONGEST_OUTPUT):
        output = (output + part)[-_LONGEST_OUTPUT:]
    return output
