"""Whether a cluster can be used, without a run: here, or on its login node."""

from __future__ import annotations

from collections.abc import Sequence

from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.host import check_ssh, login_of, silence_limit
from trainmaster.engines.slurm.command_channel import CommandChannel
from trainmaster.engines.slurm.commands import Commands, NoAnswer, Refused, run_here
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import TargetRecord

_FOLDER_HINT = "Name a folder of yours that all nodes see under the same path."


async def query_cluster(target: TargetRecord, command: Sequence[str]) -> str:
    """What a command of Slurm prints where jobs of the target are submitted."""
    if "login" not in target.options:
        return await _run("", Commands(run_here), command)
    return await _query_login(target, command)


async def _query_login(target: TargetRecord, command: Sequence[str]) -> str:
    """Also checks that the folder on the login node can be written to. Creates nothing."""
    check_ssh()
    host, silence = login_of(target), silence_limit(target)
    connection = await Connection.open(host, host.folder, silence, make=False)
    try:
        await connection.check_folder("shared_folder", _FOLDER_HINT)
        channel = await CommandChannel.start(connection, silence, lambda name, header, payload: None)
        try:
            return await _run(f" at host {host.label}", Commands(channel.run_command), command)
        finally:
            await channel.close()
    finally:
        await connection.close()


async def _run(where: str, commands: Commands, command: Sequence[str]) -> str:
    try:
        # A machine may have some of Slurm's commands although no jobs can be submitted from it.
        await commands.run("sbatch", "--version")
        return await commands.run(*command)
    except (NoAnswer, Refused) as error:
        raise ComputeTargetException(
            f"Slurm does not answer{where}",
            cause=str(error),
            hint="Check that it is a login node of the cluster: 'sinfo' must work there.",
        ) from error
