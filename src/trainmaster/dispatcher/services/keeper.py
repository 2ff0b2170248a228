"""Keeps one service running: deploys what was requested last, watches it, and restarts it if it was killed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.services.making import make_plan, note
from trainmaster.engines.pids import wait_for_pid
from trainmaster.job.agent import durable
from trainmaster.job.errors import ServiceException, TrainmasterError, WebserviceException
from trainmaster.scoring import control
from trainmaster.shared import beneath
from trainmaster.shared.folders import ServiceFolder
from trainmaster.shared.retry import Backoff
from trainmaster.shared.service_plan import ServiceFiles, ServicePlan, State
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec, ServiceState

log = logging.getLogger("trainmaster.dispatch")

_STARTS = 5
# Pauses between attempts to restart a service.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
_DRAIN_SECONDS = 35.0
_LOOK_SECONDS = 0.05
# Separate threads, so that services that start slowly do not delay other operations.
_THREADS = ThreadPoolExecutor(8, "services")


class Keeper:
    """Keeps one service in the state that its record describes."""

    def __init__(
        self, name: str, context: Context, tell: Callable[[], None], sources: Mapping[str, str] | None
    ) -> None:
        self.name = name
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
            plan, warnings = await self._make(record, record.spec, generation)
            self._say(generation, f"starting {plan.replicas} replica(s)")
            state = await self._bring_up(plan)
        except Exception as error:  # noqa: BLE001 (otherwise the service would stay Transitioning for ever)
            self._fail(record, self._describe_error(error))
        else:
            self._say(generation, f"ready on port {state.port}")
            # A service that was reported as Healthy must exist after a power cut.
            await asyncio.to_thread(durable.flush_below, self._folder.path)
            self._change(
                generation,
                state=ServiceState.HEALTHY,
                serving=generation,
                served=record.spec,
                port=state.port,
                warnings=(*warnings, *state.warnings),
                error={},
            )
            await asyncio.to_thread(self._drop_old, {record.serving, generation})

    def _fail(self, record: ServiceRecord, error: TrainmasterError) -> None:
        self._say(record.generation, f"failed: {error.message}")
        self._change(record.generation, state=ServiceState.FAILED, error=error.to_wire())

    async def _make(
        self, record: ServiceRecord, spec: ServiceSpec, generation: int
    ) -> tuple[ServicePlan, tuple[str, ...]]:
        def say(sentence: str) -> None:
            self._say(generation, sentence)

        return await make_plan(record, spec, generation, self._context, self.sources, say)

    async def _bring_up(self, plan: ServicePlan) -> State:
        """Starts a generation and waits until it serves; raises its error if it fails."""
        for _ in range(_STARTS):
            if not control.look(self._folder.path).alive:
                # The state of an earlier supervisor is outdated.
                ServiceFiles(self._folder.path).state.unlink(missing_ok=True)
            await _to_its_end(control.start, plan)
            alive = True
            while alive:
                seen = control.look(self._folder.path)
                state = control.settle(seen.state, plan.generation)
                if state is not None:
                    return state
                alive = seen.alive
                await asyncio.sleep(_LOOK_SECONDS)
            # The supervisor was killed. Start another one.
        raise WebserviceException(
            f"the supervisor of service {self.name} was killed {_STARTS} times in a row",
            hint=f"See {ServiceFiles(self._folder.path).log}.",
        )

    # Watch

    async def _watch(self, record: ServiceRecord, spec: ServiceSpec) -> None:
        """Waits until the supervisor is gone; if it is gone already, starts another one."""
        supervisor = control.supervisor(self._folder.path)
        if supervisor is not None:
            began = time.monotonic()
            await wait_for_pid(supervisor.pid)
            log.warning("service %s: its supervisor %d is gone", self.name, supervisor.pid)
            if time.monotonic() - began > _LONGEST_PAUSE:
                self._backoff.reset()
            return
        try:
            plan, _ = await self._make(record, spec, record.serving)
            state = await self._bring_up(plan)
        except Exception as error:  # noqa: BLE001 (otherwise the service would never be restarted)
            await self._still_down(record, self._describe_error(error))
            return
        log.info("service %s is back on port %d", self.name, state.port)
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
        await end_processes(self._folder.path)
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


async def end_processes(folder: Path) -> None:
    """Ends the processes of a service; requests in progress are answered, within a time limit."""
    if control.stop(folder) and not await _has_ended(folder):
        control.kill(folder)
        await _has_ended(folder)


async def _has_ended(folder: Path) -> bool:
    """Waits for the supervisor to end, within a time limit; returns whether it has ended."""
    end = time.monotonic() + _DRAIN_SECONDS
    while control.supervisor(folder) is not None:
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True


async def _to_its_end(function: Callable[..., Any], *args: Any) -> None:
    """Calls a function in a thread and waits for it even if canceled, because two starts must not overlap."""
    work = asyncio.get_running_loop().run_in_executor(_THREADS, function, *args)
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise
