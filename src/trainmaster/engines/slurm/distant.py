"""Clusters that are used through their login nodes, over SSH: each is a SlurmEngine of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.engines.engine import Ending, EngineContext, Nodes, Place
from trainmaster.engines.slurm.engine import SlurmEngine
from trainmaster.engines.slurm.login import Login
from trainmaster.engines.ssh.host import SshHost, login_of, lost_after


class DistantSlurmEngine:
    """Hands everything to the engine of the cluster that a run's target names."""

    queues = True
    shares_files = False
    runs_here = False

    def __init__(self, surroundings: EngineContext) -> None:
        self._surroundings = surroundings
        self._clusters: dict[SshHost, SlurmEngine] = {}

    def _of(self, nodes: Nodes) -> SlurmEngine:
        host = login_of(nodes.target)
        if host not in self._clusters:
            login = Login(host, lost_after(nodes.target), self._surroundings)
            self._clusters[host] = SlurmEngine(self._surroundings, login)
        return self._clusters[host]

    def place(self, nodes: Nodes) -> Place:
        return self._of(nodes).place(nodes)

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        await self._of(nodes).start(nodes, plans, kit)

    async def ended(self, nodes: Nodes, number: int) -> None:
        await self._of(nodes).ended(nodes, number)

    async def stop(self, nodes: Nodes) -> None:
        await self._of(nodes).stop(nodes)

    async def kill(self, nodes: Nodes) -> None:
        await self._of(nodes).kill(nodes)

    async def sweep(self, nodes: Nodes) -> None:
        await self._of(nodes).sweep(nodes)

    def waiting_for(self, nodes: Nodes) -> str:
        return self._of(nodes).waiting_for(nodes)

    async def ending(self, nodes: Nodes) -> Ending | None:
        return await self._of(nodes).ending(nodes)

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        return await self._of(nodes).release(nodes)

    async def close(self) -> None:
        await asyncio.gather(*(cluster.close() for cluster in self._clusters.values()))
