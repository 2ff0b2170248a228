"""Asking the hosts of a target what they are, without a run."""

from __future__ import annotations

import asyncio

from trainmaster.engines.ssh.host import SshHost, check_ssh, hosts_of, lost_after
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.records import TargetRecord


async def ask(target: TargetRecord) -> list[HostFacts]:
    """What each host says, in the order of the nodes; the first that cannot be used is the error."""
    check_ssh()
    return list(await asyncio.gather(*(_ask(host, lost_after(target)) for host in hosts_of(target))))


async def _ask(host: SshHost, silence: float) -> HostFacts:
    session, facts = await Session.open(host, host.folder, silence, make=False)
    await session.close()
    return facts
