"""The engine for Kubernetes: a run is a gang of pods, one for each of its nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Ending, EngineContext, FewerNodesError, Nodes, Place
from trainmaster.engines.kubernetes.cleaning import clean_up, release_earlier
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.losses import find_ending
from trainmaster.engines.kubernetes.storage import StorageAttempt
from trainmaster.engines.kubernetes.stream import StreamedAttempt
from trainmaster.engines.remote.plans import name_hosts
from trainmaster.job.agent.slurm import GANG
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.kubernetes_settings import read_settings
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

_RELEASE_SECONDS, _LONGEST_RELEASE_SECONDS = 1.0, 60.0


Attempt = StreamedAttempt | StorageAttempt


class KubernetesEngine:
    """Creates the pods of runs, starts agents in them, and mirrors their files."""

    queues = True
    # A Python that users manage themselves is that of the image.
    shares_files = False
    uploads_folders = True
    runs_here = False
    uses_images = True

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._clusters: dict[tuple[str, ...], Cluster] = {}
        self._attempts: dict[tuple[str, int, int], Attempt] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def place(self, nodes: Nodes) -> Place:
        """Tokens stand for the addresses of pods, which are known when all pods run and need no name service."""
        settings = read_settings(nodes.target.options)
        hosts, mpi_options = name_hosts(nodes)
        return Place(
            hosts=hosts,
            gpus=(tuple(map(str, range(nodes.target.gpus_per_node))),) * len(hosts),
            cpus=nodes.target.cpus_per_node,
            python=settings.python,
            mpi_options=mpi_options,
            hosts_file=str(nodes.folder.node(0).parent / GANG) if settings.storage is not None else "",
            reaches_dispatcher=False,
            relays_requests=True,
        )

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        attempt = self._attempt(nodes)
        try:
            await attempt.start(plans, Path(kit))
        except FewerNodesError:
            await attempt.close()
            raise
        except Exception:
            await self._release_or_later(nodes, attempt)
            raise

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        await self._attempt(nodes).follow(number)

    async def stop(self, nodes: Nodes) -> None:
        await self._attempt(nodes).stop()

    async def kill(self, nodes: Nodes) -> None:
        await self._attempt(nodes).kill()

    async def sweep(self, nodes: Nodes) -> None:
        await self._attempt(nodes).sweep()

    def waiting_for(self, nodes: Nodes) -> str:
        return self._attempt(nodes).waits_for

    async def ending(self, nodes: Nodes) -> Ending | None:
        return await find_ending(self._cluster(nodes.target), self._attempt(nodes), nodes)

    async def find_unreachable(self, nodes: Nodes) -> frozenset[int]:
        """None: the scheduler chooses machines that work."""
        return frozenset()

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        """Deletes everything that the run has in the cluster; later, if the API server does not answer now."""
        attempt = self._attempt(nodes)
        pods = [pod for pod in attempt.gang.pods if pod is not None]
        machines = [str(pod["spec"].get("nodeName") or "") for pod in pods]
        await self._release_or_later(nodes, attempt)
        for key in [key for key in self._attempts if key[0] == nodes.run_id]:
            await self._attempts.pop(key).close()
        properties = {"kubernetes.pods": ", ".join(attempt.gang.names.pods)}
        return {**properties, **({"kubernetes.nodes": ", ".join(machines)} if any(machines) else {})}

    async def _release_or_later(self, nodes: Nodes, attempt: Attempt) -> None:
        try:
            await self._release(nodes, attempt)
        except ComputeTargetException as error:
            log.warning("run %s: its pods are deleted later: %s", nodes.run_id, error.headline)
            self._keep(start_task(f"release of {nodes.run_id}", partial(self._release_later, nodes, attempt)))

    async def _release(self, nodes: Nodes, attempt: Attempt) -> None:
        await attempt.release()
        # An attempt that was cancelled before it began has not taken over the pods of the one before.
        await release_earlier(self._cluster(nodes.target), nodes, attempt.gang.names.attempt)

    async def _release_later(self, nodes: Nodes, attempt: Attempt) -> None:
        backoff = Backoff(_RELEASE_SECONDS, _LONGEST_RELEASE_SECONDS)
        pods = self._cluster(nodes.target).pods
        while True:
            await backoff.sleep()
            # As soon as the API server is back.
            await pods.wait_for(attempt.gang.names.pods, lambda: not pods.trouble, _LONGEST_RELEASE_SECONDS)
            try:
                await self._release(nodes, attempt)
                return
            except ComputeTargetException:
                continue

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for attempt in self._attempts.values():
            await attempt.close()
        for cluster in self._clusters.values():
            await cluster.close()

    def _attempt(self, nodes: Nodes) -> Attempt:
        # An elastic run may start the same attempt again with fewer nodes.
        key = (nodes.run_id, nodes.folder.attempt, len(nodes.numbers))
        if key not in self._attempts:
            cluster, storage = self._cluster(nodes.target), read_settings(nodes.target.options).storage
            if storage is None:
                self._attempts[key] = StreamedAttempt(self._context, cluster, nodes)
            else:
                self._attempts[key] = StorageAttempt(self._context, cluster, nodes, storage)
        return self._attempts[key]

    def _cluster(self, target: TargetRecord) -> Cluster:
        settings = read_settings(target.options)
        key = (settings.kubeconfig, settings.context, settings.namespace, str(settings.in_cluster))
        if key not in self._clusters:
            workspace = str(self._context.folder.read_identity()["id"])
            cluster = self._clusters[key] = Cluster(target.options, workspace)
            cluster.pods.start()
            self._keep(start_task("removing what runs left in Kubernetes", partial(clean_up, cluster, self._context)))
        return self._clusters[key]

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
