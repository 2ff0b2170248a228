"""What the hosts of a target are, without a run."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

from trainmaster.engines.remote.connection import Connection, HostFacts
from trainmaster.engines.remote.host import SshHost, check_ssh, hosts_of, silence_limit
from trainmaster.engines.ssh import passwords
from trainmaster.shared.records import TargetRecord


async def query_hosts(target: TargetRecord, secret: str = "") -> list[HostFacts]:
    """The facts of each host, in the order of the nodes. Raises the error of the first host that cannot be used."""
    check_ssh()
    with tempfile.TemporaryDirectory() as folder:
        variables = passwords.variables(secret, Path(folder)) if secret else {}
        hosts = [replace(host, variables=lambda: variables) for host in hosts_of(target)]
        queries = [_query(host, silence_limit(target)) for host in hosts]
        return list(await asyncio.gather(*queries))


async def _query(host: SshHost, silence: float) -> HostFacts:
    connection = await Connection.open(host, host.folder, silence, make=False)
    try:
        await connection.check_folder("folder", "Choose a folder that you can write to: folder='/a/folder/of/yours'.")
    finally:
        await connection.close()
    return connection.facts
