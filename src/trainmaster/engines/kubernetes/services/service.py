"""One service in a cluster: deploys it, follows it, removes it. Every step can be repeated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial

from trainmaster.engines.kubernetes.api import Api, Object
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.engines.kubernetes.services import manifests, pod_logs
from trainmaster.engines.kubernetes.services.loading import Order, load, open_loader, unload
from trainmaster.engines.kubernetes.services.manifests import Identity, selector_text
from trainmaster.engines.kubernetes.services.rollout import Rollout, health, look
from trainmaster.engines.kubernetes.services.shape import Shape
from trainmaster.engines.kubernetes.watch import watch
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.log_texts import LogPlace
from trainmaster.shared.tasks import start_task

_MANAGER = "trainmaster"
_REMOVE_SECONDS = 120.0
_LOOK_SECONDS = 0.3
_AUTOSCALING = ("autoscaling/v2", "autoscaling/v1")


class ClusterService:
    """A service of a workspace in the namespace of a target."""

    def __init__(self, api: Api, identity: Identity) -> None:
        self.api = api
        self.identity = identity
        self._name = identity.object_name

    # Deploy

    async def deploy(
        self, order: Order, shape: Shape, keys: Mapping[str, str] | None, kept: set[int], say: Callable[[str], None]
    ) -> Object:
        """Puts its files on the claim and applies its objects; returns the Deployment. `keys` are None for none."""
        generation = order.plan.generation
        async with open_loader(self.api, self.identity, generation, shape, say) as connection:
            loaded = await load(connection, order, kept, say)
        if keys is not None:
            # Before the pods, which mount it. It gets its owner below.
            await self._apply(self.api.secrets, manifests.make_keys(self.identity, keys))
        body = manifests.make_deployment(
            self.identity, generation, shape, loaded.command, loaded.variables, keys is not None
        )
        deployment = await self._apply(self.api.deployments, body)
        await self._apply_others(shape, keys, manifests.owner_of(deployment))
        return body

    async def restore(self, deployment: Object) -> None:
        """Goes back to an earlier Deployment, whose replicas still run."""
        await self._apply(self.api.deployments, deployment)

    async def _apply_others(self, shape: Shape, keys: Mapping[str, str] | None, owner: Object) -> None:
        await self._apply(self.api.services, manifests.make_service(self.identity, shape, owner))
        if keys is None:
            await self.api.delete(f"{self.api.secrets}/{self._name}")
        else:
            await self._apply(self.api.secrets, manifests.make_keys(self.identity, keys, owner))
        if shape.autoscale is not None:
            version = await self._find_autoscaling()
            body = manifests.make_autoscaler(self.identity, shape.autoscale, version, owner)
            await self._apply(self._autoscalers(version), body)
        else:
            await self.api.delete(f"{self._autoscalers('autoscaling/v1')}/{self._name}")
        if shape.reach.ingress_host:
            await self._apply(self._ingresses, manifests.make_ingress(self.identity, shape, owner))

    async def _apply(self, path: str, body: Object) -> Object:
        """Creates an object, or brings it to this description."""
        place = f"{path}/{body['metadata']['name']}"
        return await self.api.patch(place, body, kind="apply", fieldManager=_MANAGER, force="true")

    async def _find_autoscaling(self) -> str:
        for version in _AUTOSCALING:
            if await self.api.exists(f"/apis/{version}"):
                return version
        raise ComputeTargetException("the cluster has no autoscaling", hint="Use num_replicas instead.")

    def _autoscalers(self, version: str) -> str:
        return self.api.group(version, "horizontalpodautoscalers")

    @property
    def _ingresses(self) -> str:
        return self.api.group("networking.k8s.io/v1", "ingresses")

    async def exists(self) -> bool:
        """Whether the cluster has it."""
        return await self.api.exists(f"{self.api.deployments}/{self._name}")

    # Follow

    async def follow(self, generation: int) -> AsyncGenerator[Rollout]:
        """How far a generation is, at each change."""
        async with contextlib.aclosing(self._changes()) as changes:
            async for deployment, pods in changes:
                found = look(deployment, pods, generation)
                if found.state == "waiting":
                    found = look(deployment, pods, generation, await self._events(pods))
                yield found

    async def follow_health(self) -> AsyncGenerator[tuple[bool, str]]:
        """Whether there is a Deployment, and why no replica answers; empty if one does. At each change."""
        async with contextlib.aclosing(self._changes()) as changes:
            async for deployment, pods in changes:
                words = health(deployment, pods)
                if words and deployment is not None:
                    words = health(deployment, pods, await self._events(pods))
                yield deployment is not None, words

    async def _changes(self) -> AsyncGenerator[tuple[Object | None, list[Object]]]:
        """The Deployment and the pods of the service: as they are, then at each change of either."""
        labels = selector_text(self.identity.selector)
        known: dict[str, dict[str, Object]] = {}
        changed = asyncio.Event()

        async def follow_path(path: str) -> None:
            async for event in watch(self.api, path, labels):
                found = {each["metadata"]["name"]: each for each in event.objects}
                if event.kind == "reset":
                    known[path] = found
                elif event.kind == "deleted":
                    known[path] = {name: each for name, each in known[path].items() if name not in found}
                elif found:
                    known[path] = {**known[path], **found}
                changed.set()

        paths = (self.api.deployments, self.api.pods)
        name = f"watch of service {self.identity.name}"
        tasks = [start_task(name, partial(follow_path, path)) for path in paths]
        try:
            while True:
                await changed.wait()
                changed.clear()
                if len(known) == len(paths):
                    yield known[paths[0]].get(self._name), list(known[paths[1]].values())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _events(self, pods: list[Object]) -> list[Object]:
        found: list[Object] = []
        for pod in pods:
            if (pod.get("status") or {}).get("phase") == "Pending":
                with contextlib.suppress(ComputeTargetException):
                    fields = f"involvedObject.name={pod['metadata']['name']}"
                    found += (await self.api.list_objects(self.api.events, fields=fields))[0]
        return found

    async def address(self, shape: Shape) -> tuple[str, int]:
        """Where users reach it: a URL without a port, and the port."""
        service = await self.api.get(f"{self.api.services}/{self._name}")
        return manifests.address_of(self.identity, shape, self.api.namespace, service)

    # Use

    async def change_keys(self, keys: Mapping[str, str]) -> None:
        """New keys, in the running replicas within seconds."""
        secret = manifests.make_keys(self.identity, keys)
        await self.api.patch(f"{self.api.secrets}/{self._name}", {"data": secret["data"]})
        mark = {"metadata": {"annotations": {manifests.KEYS_CHANGED: secret["data"][manifests.KEYS_FILE][-16:]}}}
        for pod in await self._pods():
            with contextlib.suppress(ApiError):
                await self.api.patch(f"{self.api.pods}/{pod['metadata']['name']}", mark)

    async def logs(self, lines: int) -> tuple[str, pod_logs.Places]:
        """The last lines of each replica, one replica after the other, and where to read on."""
        return await pod_logs.read_last(self.api, await self._names(), lines)

    async def read_logs(self, places: Mapping[str, LogPlace]) -> tuple[str, pod_logs.Places]:
        """What replicas have added since `places`, and where to read on."""
        return await pod_logs.read_new(self.api, await self._names(), places)

    async def _names(self) -> list[str]:
        """The pods, the oldest first."""
        pods = sorted(await self._pods(), key=lambda each: str(each["metadata"].get("creationTimestamp")))
        return [str(pod["metadata"]["name"]) for pod in pods]

    async def ask(self, method: str, path: str, body: bytes, key: str) -> tuple[int, bytes]:
        """The answer to a request, through the API server, which needs the header Authorization for itself."""
        headers = [("Content-Type", "application/json"), *([("X-Trainmaster-Key", key)] if key else [])]
        return await self.api.send_raw(method, f"{self.api.services}/{self._name}:http/proxy{path}", body, headers)

    async def _pods(self) -> list[Object]:
        return (await self.api.list_objects(self.api.pods, selector_text(self.identity.selector)))[0]

    # Remove

    async def stop(self) -> None:
        """Ends the replicas. What belongs to the Deployment goes with it."""
        await self.api.delete(f"{self.api.deployments}/{self._name}", propagation="Background")

    async def remove(self, stamp: str, shape: Shape | None) -> None:
        """Ends the replicas and removes everything, on the claim too if its `shape` is known."""
        await self.stop()
        for path in (self.api.services, self.api.secrets):
            await self.api.delete(f"{path}/{self._name}")
        await self.api.delete(f"{self._autoscalers('autoscaling/v1')}/{self._name}")
        if shape is not None and shape.reach.ingress_host:
            await self.api.delete(f"{self._ingresses}/{self._name}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REMOVE_SECONDS):
                while await self._pods():
                    await asyncio.sleep(_LOOK_SECONDS)
        await self.remove_loaders()
        if shape is not None:
            async with open_loader(self.api, self.identity, 0, shape, lambda words: None) as connection:
                await unload(connection, self.identity.name, stamp)

    async def remove_loaders(self) -> None:
        """Removes pods that a killed dispatcher has left."""
        for pod in (await self.api.list_objects(self.api.pods, selector_text(self.identity.loader_selector)))[0]:
            await self.api.delete(f"{self.api.pods}/{pod['metadata']['name']}", grace=0)
