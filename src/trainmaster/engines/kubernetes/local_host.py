"""This machine as a host: our helper runs here, and puts environments into a folder that pods see too."""

from __future__ import annotations

import sys
from pathlib import Path

from trainmaster.engines.remote.channel import BOOTSTRAP, Channel, Unreachable
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.contents import ignore_progress
from trainmaster.engines.remote.environments import RemoteEnvironment, upload_environment
from trainmaster.engines.remote.ssh_channel import SshChannel
from trainmaster.job.errors import ComputeTargetException


class LocalHost:
    """This machine, with a folder."""

    label = "localhost"
    title = "this machine"
    cache = ""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    async def open_channel(self, silence: float) -> Channel:
        return await SshChannel.open([sys.executable, "-I", "-S", "-c", BOOTSTRAP], {})

    def explain_loss(self, code: int | None, stderr: str) -> ComputeTargetException:
        return Unreachable("a helper process on this machine ended", cause=stderr.strip()[-600:])

    def explain_start(self, code: int | None, stderr: str, output: str) -> ComputeTargetException:
        return self.explain_loss(code, stderr or output)


async def bring_environment(environment: Path, root: str) -> RemoteEnvironment:
    """Puts a built environment, and the Python that it needs, into a folder; once for each environment."""
    connection = await Connection.open(LocalHost(root), root)
    try:
        return await upload_environment(connection, environment, ignore_progress, with_python=True)
    finally:
        await connection.close()
