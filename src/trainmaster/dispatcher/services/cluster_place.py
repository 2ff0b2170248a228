"""Services in a cluster. The cluster keeps the replicas running; the dispatcher only changes and follows them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.services.deployed import Deployed
from trainmaster.dispatcher.services.making import make_plan, variables
from trainmaster.engines.kubernetes.access import read_access
from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.services.loading import Order
from trainmaster.engines.kubernetes.services.manifests import Identity
from trainmaster.engines.kubernetes.services.service import ClusterService
from trainmaster.engines.kubernetes.services.shape import Shape, read_shape
from trainmaster.environments.kit import ensure_kit
from trainmaster.environments.prefix import Prefix
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.json_files import read_json
from trainmaster.shared.log_texts import LogPlace
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec, ServiceState

log = logging.getLogger("trainmaster.dispatch")

_LINES = 200
"""Of the logs of replicas that never answered, which are kept with the deployment."""


class ClusterPlace:
    """The Deployment of one service."""

    def __init__(self, record: ServiceRecord, target: TargetRecord, context: Context) -> None:
        self._name = record.name
        self._target = target
        self._context = context
        self._folder = context.folder.service(record.name)
        self._stamp = f"{int(record.created_at * 1000):x}"
        workspace = str(context.folder.read_identity()["id"])
        self._api = Api(read_access(target.options))
        self._service = ClusterService(self._api, Identity(record.name, workspace))
        self._unhealthy = ""

    async def deploy(
        self,
        record: ServiceRecord,
        spec: ServiceSpec,
        generation: int,
        sources: Mapping[str, str] | None,
        say: Callable[[str], None],
    ) -> Deployed:
        shape = read_shape(self._target, record, spec)
        made = await make_plan(record, spec, generation, self._context, sources, say)
        identity = self._context.folder.read_identity()
        plain = replace(spec, inherited_variables={})
        own = variables(plain, Prefix(""), "", identity)
        order = Order(
            plan=made.plan,
            stamp=self._stamp,
            environment=made.environment.folder,
            kit=ensure_kit(self._context.folder.path),
            variables={name: value for name, value in own.items() if name != "PYTHONPATH"},
            python_path=own["PYTHONPATH"],
        )
        say(f"deploying to {self._target.name}, namespace {self._api.namespace}")
        body = await self._service.deploy(order, shape, self._keys(spec), {record.serving}, say)
        await self._wait(record, generation, say)
        await asyncio.to_thread(self._keep_note, generation, json.dumps(body))
        host, port = await self._service.address(shape)
        self._unhealthy = ""
        return Deployed(host, port, made.warnings)

    async def _wait(self, record: ServiceRecord, generation: int, say: Callable[[str], None]) -> None:
        """Returns when a generation is ready. If it fails, the one before stays as it was."""
        said = ""
        async with contextlib.aclosing(self._service.follow(generation)) as rollouts:
            async for rollout in rollouts:
                if rollout.state == "ready":
                    return
                if rollout.state == "waiting" and rollout.words != said:
                    said = rollout.words
                    say(said)
                if rollout.state == "missing":
                    raise WebserviceException(f"the Deployment of service '{self._name}' was deleted by somebody")
                if rollout.error is not None:
                    await self._go_back(record, say)
                    raise rollout.error

    async def _go_back(self, record: ServiceRecord, say: Callable[[str], None]) -> None:
        """To the generation before; a service that never answered has no replicas that would try for ever."""
        earlier = read_json(self._note(record.serving)) if record.serving else None
        if earlier:
            await self._service.restore(earlier)
        elif not record.serving:
            text, _ = await self._service.logs(_LINES)
            say(text)
            await self._service.stop()

    def _note(self, generation: int) -> Path:
        """The Deployment of a generation, for going back to it."""
        return self._folder.path / f"deployment-{generation}.json"

    def _keep_note(self, generation: int, text: str) -> None:
        for path in self._folder.path.glob("deployment-*.json"):
            path.unlink()
        self._note(generation).write_text(text)

    def _keys(self, spec: ServiceSpec) -> Mapping[str, str] | None:
        return read_json(self._folder.keys) if spec.auth_enabled else None

    async def is_running(self) -> bool:
        return await self._service.exists()

    async def watch(self, tell: Callable[[], None]) -> None:
        await self._service.remove_loaders()
        async with contextlib.aclosing(self._service.follow_health()) as changes:
            async for exists, words in changes:
                if not exists:
                    log.warning("service %s: its Deployment is gone", self._name)
                    return
                if words != self._unhealthy:
                    self._unhealthy = words
                    tell()

    async def remove(self) -> None:
        record = self._context.store.services.get(self._name)
        await self._service.remove(self._stamp, self._shape_of(record))

    def _shape_of(self, record: ServiceRecord | None) -> Shape | None:
        """None for a service that never got far enough to have files on the claim."""
        try:
            return read_shape(self._target, record, record.spec) if record is not None else None
        except WebserviceException:
            return None

    async def change_keys(self, keys: Mapping[str, str]) -> None:
        await self._service.change_keys(keys)

    def describe(self, record: ServiceRecord) -> ServiceRecord:
        if record.state is not ServiceState.HEALTHY or not self._unhealthy:
            return record
        error = WebserviceException(f"no replica answers: {self._unhealthy}")
        return replace(record, state=ServiceState.UNHEALTHY, error=error.to_wire())

    async def logs(self, lines: int) -> tuple[str, dict[str, LogPlace]]:
        """The last lines of each replica, and where to read on in the log of its pod."""
        return await self._service.logs(lines)

    async def read_logs(self, places: Mapping[str, LogPlace]) -> tuple[str, dict[str, LogPlace]]:
        """What replicas have added since `places`, and where to read on."""
        return await self._service.read_logs(places)

    async def ask(self, method: str, path: str, body: bytes, key: str) -> tuple[int, bytes]:
        """The answer to a request, through the API server."""
        return await self._service.ask(method, path, body, key)

    async def close(self) -> None:
        await self._api.close()
