"""The operations on services and images for clients. Each may be repeated."""

from __future__ import annotations

import asyncio
import builtins
import json
import logging
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.environments import environment_of
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.services.images import Images
from trainmaster.dispatcher.services.keeper import Keeper
from trainmaster.dispatcher.services.local_place import LocalPlace, end_processes
from trainmaster.dispatcher.services.place import Place, find_cluster, find_place
from trainmaster.environments.checks import check_buildable
from trainmaster.job.agent import durable
from trainmaster.job.errors import ModelNotFoundException, WebserviceException
from trainmaster.scoring import control
from trainmaster.shared import beneath
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.serialization import from_plain
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec, ServiceState, check_service_name
from trainmaster.shared.tasks import start_task

if TYPE_CHECKING:
    from trainmaster.dispatcher.services.cluster_place import ClusterPlace

log = logging.getLogger("trainmaster.dispatch")

_LONGEST_WAIT = 60.0
_LOOK_SECONDS = 0.1
_ATTEMPTS = 5
_KEYS = ("primary", "secondary")


class Services:
    """All services of the workspace."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._keepers: dict[str, Keeper] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self.images = Images(context)

    @property
    def busy(self) -> bool:
        """Whether there are services to keep running or images to build; then the dispatcher does not end."""
        return bool(self._keepers) or self.images.busy

    def resume(self) -> None:
        """Continues everything that an earlier dispatcher left."""
        known = self._store.services.list_all()
        for record in known:
            self._take(record.name)
        self.images.resume()
        self._sweep({record.name for record in known})

    def _sweep(self, known: set[str]) -> None:
        """Removes what a killed dispatcher left of deleted services."""
        with suppress(FileNotFoundError):
            for place in self._context.folder.services.iterdir():
                if place.name not in known:
                    self._tasks[f"/{place.name}"] = start_task(
                        f"removing service {place.name}", partial(self._remove, place)
                    )

    async def _remove(self, place: Path) -> None:
        await end_processes(place)
        await asyncio.to_thread(beneath.remove_tree, self._context.folder.services, place.name)
        self._tasks.pop(f"/{place.name}", None)

    async def close(self) -> None:
        """Stops keeping services; they continue to serve."""
        tasks = [*self._tasks.values(), *self.images.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # For clients

    @operation("services.deploy")
    async def deploy(
        self,
        service: Mapping[str, Any],
        keys: Mapping[str, str | None] | None = None,
        sources: Mapping[str, str] | None = None,
        overwrite: bool = False,
    ) -> ServiceRecord:
        """Starts to deploy a service; the same token again returns the same service.

        With `overwrite`, a service of this name is replaced without interruption and keeps its address.
        """
        record = from_plain(ServiceRecord, service)
        check_service_name(record.name)
        known = await self._wait_until_settled(record.name)
        if known is not None and known.token == record.token:
            return self._on_its_way(known, sources)
        self._check(record.spec)
        if known is not None and not overwrite:
            raise WebserviceException(
                f"there is a service '{record.name}' already",
                hint="Update it, replace it with overwrite=True (--overwrite), or use another name.",
            )
        cluster = find_cluster(self._context, record)
        if known is not None and not self._can_replace(record, known):
            await self.delete(record.name)
            return await self.deploy(service, keys, sources, overwrite)
        if known is None:
            if cluster is None:
                _check_address(record.host, record.port)
            else:
                check_cluster(cluster, record)
            return self._on_its_way(self._add(record, keys or {}), sources)
        self._write_keys(record.name, {**self._read_keys(record.name), **_select_keys(keys)})
        changes = {
            "spec": record.spec,
            "compute_type": record.compute_type,
            "settings": record.settings,
            "tags": record.tags,
            "properties": record.properties,
            "description": record.description,
            "image_id": record.image_id,
        }
        return self._on_its_way(self._advance(known, record.token, changes), sources)

    @operation("services.update")
    async def update(
        self, name: str, token: str, changes: Mapping[str, Any], sources: Mapping[str, str] | None = None
    ) -> ServiceRecord:
        """Starts a generation with another `spec`; `changes` may also have settings, tags, properties, description."""
        known = self._require(await self._wait_until_settled(name), name)
        if known.token == token:
            return self._on_its_way(known, sources)
        spec = from_plain(ServiceSpec, changes.get("spec"))
        self._check(spec)
        _check_properties(known, changes)
        return self._on_its_way(self._advance(known, token, {**changes, "spec": spec}), sources)

    @operation("services.get")
    def get(self, name: str) -> ServiceRecord:
        return self._describe(self._require(self._find(name), name))

    @operation("services.list")
    def list(self) -> list[ServiceRecord]:
        found = self._store.services.list_all()
        return [self._describe(record) for record in found if record.state is not ServiceState.DELETING]

    @operation("services.wait")
    async def wait(self, name: str, generation: int, seconds: float = 30.0) -> ServiceRecord:
        """Returns the service when this generation is ready or has failed, or after `seconds` at the latest."""
        end = time.monotonic() + min(seconds, _LONGEST_WAIT)
        while True:
            changed = self._changed
            record = self._describe(self._require(self._find(name), name))
            rest = end - time.monotonic()
            # While a killed service is restarted, only its supervisor knows when it is ready.
            comes_back = record.state is ServiceState.UNHEALTHY and not record.error
            settled = record.state is not ServiceState.TRANSITIONING and not comes_back
            if settled or record.generation > generation or rest <= 0:
                return record
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(rest, _LOOK_SECONDS) if comes_back else rest)

    @operation("services.label")
    def label(
        self,
        name: str,
        tags: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
        description: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> ServiceRecord:
        """Replaces all tags and settings, adds properties, sets the description. Nothing is deployed again."""
        known = self._require(self._find(name), name)
        changes: dict[str, Any] = {}
        if tags is not None:
            changes["tags"] = dict(tags)
        if properties is not None:
            _check_properties(known, {"properties": properties})
            changes["properties"] = {**known.properties, **properties}
        if description is not None:
            changes["description"] = description
        if settings is not None:
            changes["settings"] = dict(settings)
            if self.cluster_of(known) is not None and dict(settings) != dict(known.settings):
                # In a cluster they decide what the replicas are like.
                return self._on_its_way(self._advance(known, secrets.token_hex(16), changes), None)
        if changes:
            self._store.services.update(name, **changes, updated_at=time.time())
        return self.get(name)

    @operation("services.delete")
    async def delete(self, name: str) -> bool:
        """Deletes a service and waits until it is gone; returns whether it existed."""
        if self._store.services.get(name) is None:
            return False
        self._store.services.update(name, state=ServiceState.DELETING, updated_at=time.time())
        self._take(name)
        await self._wait_until_settled(name)
        return True

    @operation("services.keys")
    def keys(self, name: str) -> dict[str, str]:
        """`{"primary", "secondary"}`."""
        self._require(self._find(name), name)
        return self._read_keys(name)

    @operation("services.set_key")
    async def set_key(self, name: str, which: str, key: str) -> dict[str, str]:
        """Replaces a key, with immediate effect."""
        record = self._require(self._find(name), name)
        if which not in _KEYS:
            raise WebserviceException(f"the key must be Primary or Secondary, not {which!r}")
        self._write_keys(name, {**self._read_keys(name), which: key})
        keys, place = self._read_keys(name), self.place_of(record)
        if place is not None and (record.served or record.spec).auth_enabled:
            await place.change_keys(keys)
        return keys

    # For other parts of the dispatcher

    def users_of_model(self, name: str, version: int) -> builtins.list[str]:
        """A sentence for each service that uses this model or is about to."""
        wanted = f"{name}:{version}"
        found = []
        for record in self._store.services.list_all():
            specs = [record.spec, *([record.served] if record.served else [])]
            if record.state is not ServiceState.DELETING and any(wanted in spec.models for spec in specs):
                found.append(f"Service '{record.name}' has it.")
        return found

    def environments_in_use(self) -> dict[str, builtins.list[str]]:
        """Folder of each environment to the services that use it."""
        found: dict[str, builtins.list[str]] = {}
        for record in self._store.services.list_all():
            folder = self._context.folder.service(record.name)
            places = (
                environment_of(RunFolder(folder.generation(each))) for each in {record.serving, record.generation}
            )
            for place in {each for each in places if each}:
                found.setdefault(place, []).append(f"service {record.name}")
        return found

    # Steps

    def _check(self, spec: ServiceSpec) -> None:
        """Refuses a service that can never be deployed."""
        check_buildable(spec.environment)
        for model in spec.models:
            name, _, version = model.rpartition(":")
            if not version.isdigit() or self._store.models.get(name, int(version)) is None:
                raise ModelNotFoundException(
                    f"ModelNotFound: there is no model {model[:300]} in this workspace",
                    hint="'trainmaster models list' lists them.",
                )

    def _add(self, record: ServiceRecord, keys: Mapping[str, str | None]) -> ServiceRecord:
        folder = self._context.folder.service(record.name).path
        durable.make_folder(folder, mode=0o700)
        self._write_keys(record.name, {**{which: new_key() for which in _KEYS}, **_select_keys(keys)})
        now = time.time()
        fresh = replace(record, state=ServiceState.TRANSITIONING, generation=1, served=None, serving=0, error={})
        return self._store.services.add(replace(fresh, created_at=now, updated_at=now))

    def _advance(self, known: ServiceRecord, token: str, changes: Mapping[str, Any]) -> ServiceRecord:
        properties = {**known.properties, **changes.get("properties", {})}
        changed = self._store.services.update(
            known.name,
            **{
                **changes,
                "properties": properties,
                "token": token,
                "generation": known.generation + 1,
                "state": ServiceState.TRANSITIONING,
                "error": {},
                "updated_at": time.time(),
            },
        )
        assert changed is not None
        return changed

    def _on_its_way(self, record: ServiceRecord, sources: Mapping[str, str] | None) -> ServiceRecord:
        self._take(record.name, sources)
        return self._describe(record)

    def _take(self, name: str, sources: Mapping[str, str] | None = None) -> None:
        """Starts a keeper for the service, or tells its keeper that the record may have changed."""
        keeper = self._keepers.get(name)
        if keeper is not None and not keeper.finished:
            keeper.sources = keeper.sources if sources is None else sources
            keeper.wake()
            return
        record = self._store.services.get(name)
        if record is None:
            return
        place = find_place(self._context, record)
        keeper = self._keepers[name] = Keeper(name, place, self._context, self._tell, sources)
        self._tasks[name] = start_task(f"service {name}", partial(self._keep, keeper))

    async def _keep(self, keeper: Keeper) -> None:
        await keeper.keep()
        await keeper.place.close()
        if self._keepers.get(keeper.name) is keeper:
            del self._keepers[keeper.name], self._tasks[keeper.name]
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _wait_until_settled(self, name: str) -> ServiceRecord | None:
        """The record; None, after waiting for the end of the deletion, if the service is being deleted."""
        for _ in range(_ATTEMPTS):
            record = self._store.services.get(name)
            if record is not None and record.state is not ServiceState.DELETING:
                return record
            if record is not None:
                self._take(name)
            task = self._tasks.get(name) or self._tasks.get(f"/{name}")
            if task is None:
                return None
            await asyncio.wait({task}, timeout=_LONGEST_WAIT)
        raise WebserviceException(f"service '{name}' cannot be deleted", hint=f"See {self._context.folder.log}.")

    def _find(self, name: str) -> ServiceRecord | None:
        record = self._store.services.get(name) if isinstance(name, str) else None
        return None if record is None or record.state is ServiceState.DELETING else record

    def _require(self, record: ServiceRecord | None, name: str) -> ServiceRecord:
        if record is not None:
            return record
        known = ", ".join(each.name for each in self.list())
        raise WebserviceException(
            f"WebserviceNotFound: there is no service '{str(name)[:300]}' in this workspace",
            hint=f"Known: {known or 'none'}. Model.deploy(...) makes one.",
        )

    def _describe(self, record: ServiceRecord) -> ServiceRecord:
        """The record with the current state of its replicas."""
        if not record.serving:
            return record
        place = self.place_of(record)
        return record if place is None else place.describe(record)

    def place_of(self, record: ServiceRecord) -> Place | None:
        """Where a service runs; None if nobody keeps it running."""
        keeper = self._keepers.get(record.name)
        return None if keeper is None else keeper.place

    def cluster_of(self, record: ServiceRecord) -> ClusterPlace | None:
        """The cluster that a service runs in; None on this machine."""
        place = self.place_of(record)
        return None if isinstance(place, LocalPlace) else cast("ClusterPlace | None", place)

    def _can_replace(self, wanted: ServiceRecord, known: ServiceRecord) -> bool:
        """Whether a service can take over the address of another."""
        clusters = [find_cluster(self._context, each) for each in (wanted, known)]
        if clusters == [None, None]:
            return _same_address(wanted, known)
        return None not in clusters and clusters[0] == clusters[1]

    def _read_keys(self, name: str) -> dict[str, str]:
        file = self._context.folder.service(name).keys
        try:
            keys = json.loads(file.read_text())
            return {which: str(keys[which]) for which in _KEYS}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WebserviceException(f"the keys of service '{name}' cannot be read", cause=str(error)) from None

    def _write_keys(self, name: str, keys: Mapping[str, str]) -> None:
        control.write_keys(self._context.folder.service(name).keys, keys["primary"], keys["secondary"])


def new_key() -> str:
    """A random key."""
    return secrets.token_urlsafe(24)


def _select_keys(keys: Mapping[str, str | None] | None) -> dict[str, str]:
    return {which: key for which, key in (keys or {}).items() if which in _KEYS and key}


def check_cluster(target: TargetRecord, record: ServiceRecord) -> None:
    """Refuses a service that its cluster cannot run."""
    # It needs packages that only dispatchers with a cluster load.
    from trainmaster.engines.kubernetes.services.shape import read_shape

    read_shape(target, record, record.spec)


def _same_address(wanted: ServiceRecord, known: ServiceRecord) -> bool:
    """Whether a service can replace another at its address."""
    return wanted.host == known.host and wanted.port in (0, known.port)


def _check_address(host: str, port: int) -> None:
    """Raises an error at once if an address cannot be used; a supervisor would wait for the port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        hint = "Omit the port to use any free port." if port else "Use an address of this machine."
        raise WebserviceException(
            f"the service cannot use the address {host}:{port}" if port else f"the service cannot listen on {host}",
            cause=error.strerror or str(error),
            hint=hint,
        ) from None


def _check_properties(known: ServiceRecord, changes: Mapping[str, Any]) -> None:
    for key, value in changes.get("properties", {}).items():
        if known.properties.get(key, value) != value:
            raise WebserviceException(
                f"property '{key}' of service '{known.name}' is '{known.properties[key]}' already",
                cause="Properties cannot be changed once they are set.",
                hint="Use a tag for values that change.",
            )
