"""One namespace of one cluster, for one workspace: its API server, and its pods by one watch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.engines.kubernetes.pod_watch import PodWatch
from trainmaster.engines.kubernetes.pods import RUN, GangNames, selector_of
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.engines.remote.transfers import Transfers
from trainmaster.job.errors import ComputeTargetException

# Uploads to pods at the same time: they all go through the API server.
_MOST_UPLOADS = 4


class Cluster:
    """A namespace in which runs of a workspace have pods."""

    def __init__(self, options: Mapping[str, Any], workspace: str) -> None:
        self.workspace = workspace
        self.api = Api(read_access(options))
        # Pods of services have the label of the workspace too, but not that of a run.
        self.selector = f"{selector_of(workspace)},{RUN}"
        self.pods = PodWatch(self.api, self.selector)
        self.upload_turns = asyncio.Semaphore(_MOST_UPLOADS)
        self._transfers: dict[str, Transfers] = {}

    def transfers(self, cache: str) -> Transfers:
        """What is being sent to a cache that several pods share."""
        return self._transfers.setdefault(cache, Transfers())

    def check_answers(self) -> None:
        """Raises Unreachable if the API server does not answer now: waiting for it would delay the end of a run."""
        if self.pods.trouble:
            raise Unreachable(self.pods.trouble)

    async def create_service(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Creates a service, or returns the one that exists: the name is the run's own."""
        try:
            return await self.api.create(self.api.services, body)
        except ApiError as error:
            if not is_conflict(error):
                raise
        return await self.api.get(f"{self.api.services}/{body['metadata']['name']}")

    async def create_pod(self, body: Mapping[str, Any]) -> None:
        """Creates a pod, unless it exists."""
        try:
            self.pods.add(await self.api.create(self.api.pods, body))
        except ApiError as error:
            if not is_conflict(error):
                raise

    async def read_pod(self, name: str) -> Mapping[str, Any] | None:
        """The pod of this name as the API server knows it, which may be newer than the watch; None if it is gone."""
        try:
            return await self.api.get(f"{self.api.pods}/{name}")
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def delete_pods(self, names: Sequence[str]) -> None:
        """Deletes pods; those that do not exist are fine."""
        await asyncio.gather(*(self.api.delete(f"{self.api.pods}/{name}") for name in names))

    async def delete_gang(self, names: GangNames) -> None:
        """Deletes the service, which owns everything else, and the pods at once: the garbage collector takes longer."""
        await self.api.delete(f"{self.api.services}/{names.service}", propagation="Background")
        await self.delete_pods(names.pods)

    async def list_events(self, pod: str) -> list[Mapping[str, Any]]:
        """What the cluster reports about a pod; nothing if it does not say."""
        try:
            events, _ = await self.api.list_objects(self.api.events, fields=f"involvedObject.name={pod}")
        except ComputeTargetException:
            return []
        return events

    async def close(self) -> None:
        await self.pods.close()
        await self.api.close()


def is_conflict(error: ApiError) -> bool:
    """Whether an object of the same name exists already."""
    return error.status == 409
