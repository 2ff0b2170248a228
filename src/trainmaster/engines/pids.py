"""Waiting for the end of any process."""

from __future__ import annotations

import asyncio
import contextlib
import os

from trainmaster.job.agent.shortage import is_temporary
from trainmaster.shared.retry import Backoff


async def wait_for_pid(pid: int) -> None:
    """Returns when process `pid` has ended, without polling; reaps it if it is our child."""
    try:
        handle = await _open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(handle, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


async def _open(pid: int) -> int:
    """A pidfd of the process; retries while the system has no free handles."""
    backoff = Backoff()
    while True:
        try:
            return os.pidfd_open(pid)
        except OSError as error:
            if not is_temporary(error):
                raise
        await backoff.sleep()
