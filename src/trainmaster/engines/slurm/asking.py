"""Asking a cluster something without a run: here, or at its login node."""

from __future__ import annotations

from collections.abc import Sequence

from trainmaster.engines.slurm.command_channel import CommandChannel
from trainmaster.engines.slurm.commands import Commands, NoAnswer, Refused, carry_out_here
from trainmaster.engines.ssh.asking import check_folder
from trainmaster.engines.ssh.host import check_ssh, login_of, lost_after
from trainmaster.engines.ssh.session import Session
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import TargetRecord

_ON_FOLDER = "Name a folder of yours there that all nodes see under the same path."


async def ask(target: TargetRecord, command: Sequence[str]) -> str:
    """What a command of Slurm says where jobs of the target are submitted."""
    if "login" not in target.options:
        return await _said("", Commands(carry_out_here), command)
    return await _ask_login(target, command)


async def _ask_login(target: TargetRecord, command: Sequence[str]) -> str:
    """At the login node, to whose folder there can be written. Nothing is made."""
    check_ssh()
    host, patience = login_of(target), lost_after(target)
    session, facts = await Session.open(host, host.folder, patience, make=False)
    try:
        await check_folder(session, "shared_folder", _ON_FOLDER)
        desk = await CommandChannel.at(session, facts, patience, lambda name, header, payload: None)
        try:
            return await _said(f" at host {host.shown}", Commands(desk.carry_out), command)
        finally:
            await desk.close()
    finally:
        await session.close()


async def _said(where: str, commands: Commands, command: Sequence[str]) -> str:
    try:
        # A machine may have some of the commands and not be one from which jobs are submitted.
        await commands.ask("sbatch", "--version")
        return await commands.ask(*command)
    except (NoAnswer, Refused) as error:
        raise ComputeTargetException(
            f"Slurm does not answer{where}",
            cause=str(error),
            hint="Is it a login node of the cluster? 'sinfo' has to work there.",
        ) from error
