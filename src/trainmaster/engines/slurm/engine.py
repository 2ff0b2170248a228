"""The engine for Slurm: one batch job per attempt, on the cluster of the run's target."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines import job_requests
from trainmaster.engines.engine import Ending, EngineContext, Nodes, Place
from trainmaster.engines.plans import read_claim
from trainmaster.engines.slurm import options, states
from trainmaster.engines.slurm.cluster import Cluster
from trainmaster.engines.slurm.job import Job
from trainmaster.engines.slurm.site import OnlyHere, Site, Sites
from trainmaster.job.agent.slurm import GANG
from trainmaster.job.agent.tokens import gpu_token, host_token
from trainmaster.job.errors import ComputeTargetException

# For Slurm to say why it ended a job whose agents have already ended.
_EXPLAIN_SECONDS = 60.0
# For unreachable agents to notice that they have to end.
_GIVE_UP_SECONDS = 10.0


class SlurmEngine:
    """Lets Slurm queue and start runs."""

    queues = True
    uploads_folders = True
    runs_here = False

    def __init__(self, context: EngineContext, sites: Sites | None = None) -> None:
        self._context = context
        self._sites: Sites = sites or OnlyHere()
        self._clusters: dict[Site, Cluster] = {}
        self.shares_files = self._sites.shares_files

    def _cluster(self, nodes: Nodes) -> Cluster:
        site = self._sites.find(nodes.target)
        if site not in self._clusters:
            self._clusters[site] = Cluster(self._context, site)
        return self._clusters[site]

    def place(self, nodes: Nodes) -> Place:
        """Tokens stand for the machines, which Slurm chooses later."""
        count, gpus = len(nodes.numbers), range(nodes.target.gpus_per_node)
        return Place(
            hosts=tuple(host_token(number) for number in range(count)),
            gpus=(tuple(gpu_token(number) for number in gpus),) * count,
            cpus=nodes.target.cpus_per_node,
            python=self._python(nodes),
            mpi_options=("--map-by", f"ppr:{nodes.processes_per_node}:node:OVERSUBSCRIBE"),
            mpi_inherits=("SLURM", "PMI"),
            hosts_file=str(nodes.folder.node(0).parent / GANG),
            reaches_dispatcher=False,
            relays_requests=True,
        )

    def _python(self, nodes: Nodes) -> str:
        return str(nodes.target.options.get("python") or self._sites.find(nodes.target).python)

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        job_requests.make_folder(nodes)
        cluster = self._cluster(nodes)
        job, site = cluster.job(nodes), cluster.site
        if not job.submitted:
            await self._bring(site, job, plans, Path(kit))
            if job.stopped:
                return
        folder, kit_there = site.path(job, job.folder), site.path(job, Path(kit))
        setup = options.setup_lines(nodes.target.options)
        job.script = options.batch_script(self._python(nodes), kit_there, folder, nodes.count, setup)
        if not job.submitted:
            await cluster.submit(job)
        _check_accepted(job)
        site.follow(job)
        cluster.watch()

    async def _bring(self, site: Site, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        """Makes everything available that the nodes need, unless the run is stopped before."""
        job.upload = asyncio.ensure_future(site.bring(job, plans, kit))
        try:
            await job.upload
        except asyncio.CancelledError:
            if not job.stopped:
                raise
        finally:
            job.upload = None

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        cluster = self._cluster(nodes)
        job = cluster.job(nodes)
        if job.submitted:
            cluster.site.follow(job)
        cluster.watch()
        while job.result(number) is None and not job.over.is_set():
            await job.changed.wait()

    async def stop(self, nodes: Nodes) -> None:
        cluster = self._cluster(nodes)
        await cluster.stop(cluster.job(nodes))

    async def kill(self, nodes: Nodes) -> None:
        cluster = self._cluster(nodes)
        await cluster.kill(cluster.job(nodes))

    async def sweep(self, nodes: Nodes) -> None:
        """Slurm ends what a job leaves behind. A file tells agents on machines without slurmd to end."""
        cluster = self._cluster(nodes)
        job = cluster.job(nodes)
        await cluster.site.give_up(job)
        await cluster.scancel(job)
        claims = {number: read_claim(nodes.folder.node(number)) for number in range(nodes.count)}
        claimed = [number for number, claim in claims.items() if claim and not claim.get("cancelled")]
        if claimed and job.state in states.OVER:
            # Slurm has ended the agents on machines that it reaches: they write nothing more.
            lost = await cluster.find_lost_nodes(job)
            claimed = [number for number in claimed if lost is None or number in lost]
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while any(job.result(number) is None for number in claimed) and time.monotonic() < deadline:
            await asyncio.sleep(0.1)

    def waiting_for(self, nodes: Nodes) -> str:
        cluster = self._cluster(nodes)
        return cluster.waiting_for(cluster.job(nodes))

    async def ending(self, nodes: Nodes) -> Ending | None:
        cluster = self._cluster(nodes)
        job = cluster.job(nodes)
        _check_accepted(job)
        if not job.needs_explaining():
            return None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(cluster.wait_until_over(job), _EXPLAIN_SECONDS)
        lost = await cluster.find_lost_nodes(job) if job.state == "NODE_FAIL" else None
        silent = lost or job.silent
        if job.state == "COMPLETED" and not silent:
            return None
        output = job.read_output() if job.state in ("FAILED", "COMPLETED") else ""
        return states.ending(job.id, job.state, job.node_list, output, silent)

    async def find_unreachable(self, nodes: Nodes) -> frozenset[int]:
        return frozenset()

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        cluster = self._cluster(nodes)
        job = cluster.remove(nodes)
        properties: dict[str, str] = {}
        if job.id:
            properties["slurm.job_id"] = job.id
            if job.node_list:
                properties["slurm.nodes"] = job.node_list
            properties.update(await cluster.accounting.properties(job.id))
        return {**properties, **await cluster.site.forget(job)}

    async def close(self) -> None:
        await asyncio.gather(*(cluster.close() for cluster in self._clusters.values()))


def _check_accepted(job: Job) -> None:
    if job.refused:
        raise ComputeTargetException("Slurm refused the job", cause=job.refused, hint=_refusal_hint(job.refused))


def _refusal_hint(refusal: str) -> str:
    if "partition" in refusal.lower():
        return "'sinfo' lists the partitions; change the target with SlurmCompute.configuration(partition=...)."
    if "account" in refusal.lower() or "qos" in refusal.lower():
        return "'sacctmgr show associations user=$USER' lists your accounts and QOS."
    return "Try the same options with 'sbatch --test-only'."
