"""Asking the hosts of a target what they are, without a run."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trainmaster.engines.ssh import passwords
from trainmaster.engines.ssh.host import SshHost, check_ssh, hosts_of, lost_after
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import TargetRecord


async def ask(target: TargetRecord, secret: str = "") -> list[HostFacts]:
    """What each host says, in the order of the nodes; the first that cannot be used is the error."""
    check_ssh()
    with tempfile.TemporaryDirectory() as folder:
        variables = passwords.variables(secret, Path(folder)) if secret else {}
        works = [_ask(host, lost_after(target), variables) for host in hosts_of(target)]
        return list(await asyncio.gather(*works))


async def _ask(host: SshHost, silence: float, variables: Mapping[str, str]) -> HostFacts:
    session, facts = await Session.open(host, host.folder, silence, variables, make=False)
    try:
        await check_folder(session, "folder", "Say where everything is to be kept there: folder='/a/folder/of/yours'.")
    finally:
        await session.close()
    return facts


async def check_folder(session: Session, parameter: str, hint: str) -> None:
    """Refuses a host whose folder cannot be written to; nothing is made."""
    host = session.host
    try:
        await session.call({"op": "writable", "path": host.folder})
    except ComputeTargetException as error:
        raise ComputeTargetException(
            f"{parameter} {host.folder} cannot be written to at host {host.shown}", cause=error.cause, hint=hint
        ) from error
