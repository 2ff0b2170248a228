"""Keeps one service running: deploys what was requested last, watches it, and restarts it if it was killed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.services.deployed import Deployed
from trainmaster.dispatcher.services.making import note
from trainmaster.dispatcher.services.place import Place
from trainmaster.job.agent import durable
from trainmaster.job.errors import ServiceException, TrainmasterError, WebserviceException
from trainmaster.shared import beneath
from trainmaster.shared.folders import ServiceFolder
from trainmaster.shared.retry import Backoff
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec, ServiceState

log = logging.getLogger("trainmaster.dispatch")

# Pauses between attempts to restart a service.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0


class Keeper:
    """Keeps one service in the state that its record describes, wherever its replicas run."""

    def __init__(
        self, name: str, place: Place, context: Context, tell: Callable[[], None], sources: Mapping[str, str] | None
    ) -> None:
        self.name = name
        self.place = place
        self.sources = sources
        self.finished = False
        self._context = context
        self._store = context.store
        self._folder: ServiceFolder = context.folder.service(name)
        self._tell = tell
        self._woken = asyncio.Event()
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)

    def wake(self) -> None:
        """The record has changed."""
        self._woken.set()

    async def keep(self) -> None:
        """Returns when the service is deleted, or has failed and nothing is serving."""
        while await self._step():
            pass
        self.finished = True
        self._tell()

    async def _step(self) -> bool:
        """Does the next thing that the record asks for; false if there is nothing to do."""
        self._woken.clear()
        record = self._store.services.get(self.name)
        if record is None:
            return False
        if record.state is ServiceState.DELETING:
            await self._take_down()
            return False
        if record.state is ServiceState.TRANSITIONING:
            await self._unless_woken(self._deploy(record))
            return True
        if record.serving and record.served is not None:
            await self._unless_woken(self._watch(record, record.served))
            return True
        return False

    async def _unless_woken(self, work: Coroutine[Any, Any, None]) -> None:
        """Does the work, but stops it when the record changes."""
        task = asyncio.ensure_future(work)
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({task, woken}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            woken.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    # Deploy

    async def _deploy(self, record: ServiceRecord) -> None:
        generation = record.generation
        try:
            self._say(generation, f"generation {generation} of service {self.name}")
            deployed = await self._bring_up(record, record.spec, generation)
        except Exception as error:  # noqa: BLE001 (otherwise the service would stay Transitioning for ever)
            self._fail(record, self._describe_error(error))
        else:
            self._say(generation, f"ready on port {deployed.port}")
            # A service that was reported as Healthy must exist after a power cut.
            await asyncio.to_thread(durable.flush_below, self._folder.path)
            self._change(
                generation,
                state=ServiceState.HEALTHY,
                serving=generation,
                served=record.spec,
                host=deployed.host,
                port=deployed.port,
                warnings=deployed.warnings,
                error={},
            )
            await asyncio.to_thread(self._drop_old, {record.serving, generation})

    def _fail(self, record: ServiceRecord, error: TrainmasterError) -> None:
        self._say(record.generation, f"failed: {error.message}")
        self._change(record.generation, state=ServiceState.FAILED, error=error.to_wire())

    async def _bring_up(self, record: ServiceRecord, spec: ServiceSpec, generation: int) -> Deployed:
        def say(sentence: str) -> None:
            self._say(generation, sentence)

        return await self.place.deploy(record, spec, generation, self.sources, say)

    # Watch

    async def _watch(self, record: ServiceRecord, spec: ServiceSpec) -> None:
        """Waits until the service is gone; if it is gone already, starts it again."""
        try:
            if await self.place.is_running():
                if record.state is ServiceState.UNHEALTHY:
                    self._change(record.generation, state=ServiceState.HEALTHY, error={})
                began = time.monotonic()
                await self.place.watch(self._tell)
                if time.monotonic() - began > _LONGEST_PAUSE:
                    self._backoff.reset()
                return
            deployed = await self._bring_up(record, spec, record.serving)
        except Exception as error:  # noqa: BLE001 (otherwise the service would never be restarted)
            await self._still_down(record, self._describe_error(error))
            return
        log.info("service %s is back on port %d", self.name, deployed.port)
        if record.state is ServiceState.UNHEALTHY:
            self._change(record.generation, state=ServiceState.HEALTHY, error={})
        self._tell()
        await self._wait_a_moment()

    async def _still_down(self, record: ServiceRecord, error: TrainmasterError) -> None:
        log.warning("service %s cannot be brought back yet: %s", self.name, error.message)
        if record.state is not ServiceState.FAILED:
            self._change(record.generation, state=ServiceState.UNHEALTHY, error=error.to_wire())
        await self._wait_a_moment()

    async def _wait_a_moment(self) -> None:
        """Pauses, so that a service that fails again and again does not use up the machine."""
        await self._backoff.sleep()

    # Delete

    async def _take_down(self) -> None:
        """Ends processes, then deletes record and files. After a kill, the next dispatcher does the rest."""
        await self.place.remove()
        self._store.services.delete(self.name)
        await asyncio.to_thread(beneath.remove_tree, self._context.folder.services, self.name)
        log.info("service %s is deleted", self.name)

    # Report

    def _change(self, generation: int, **changes: Any) -> None:
        if self._store.services.update(self.name, generation, **changes, updated_at=time.time()) is not None:
            log.info("service %s: generation %d is %s", self.name, generation, changes.get("state"))
        self._tell()

    def _say(self, generation: int, sentence: str) -> None:
        note(self._folder.deploy_log(generation), sentence)

    def _describe_error(self, error: Exception) -> TrainmasterError:
        """The error for users; the log has the details of an unexpected one."""
        if isinstance(error, TrainmasterError):
            return error
        if isinstance(error, OSError):
            place = f"{error.filename}: " if error.filename else ""
            return WebserviceException("the service cannot be deployed", cause=f"{place}{error.strerror or error}")
        log.error("service %s", self.name, exc_info=error)
        return ServiceException(f"the deployment failed: {error!r}", hint="See dispatcher.log.")

    def _drop_old(self, kept: set[int]) -> None:
        """Deletes old generations; the previous one stays, because it may still answer requests."""
        for place in self._folder.path.iterdir():
            if place.name.isdigit() and int(place.name) not in kept and int(place.name) < max(kept):
                beneath.remove_tree(self._folder.path, place.name)
