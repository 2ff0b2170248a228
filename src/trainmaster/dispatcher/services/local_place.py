"""Services as processes of this machine: a supervisor with its replicas."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.services.deployed import Deployed
from trainmaster.dispatcher.services.making import make_plan
from trainmaster.engines.pids import wait_for_pid
from trainmaster.job.errors import WebserviceException
from trainmaster.scoring import control
from trainmaster.shared.folders import ServiceFolder
from trainmaster.shared.service_plan import ServiceFiles, ServicePlan, State
from trainmaster.shared.service_spec import ServiceRecord, ServiceSpec, ServiceState

log = logging.getLogger("trainmaster.dispatch")

_STARTS = 5
_DRAIN_SECONDS = 35.0
_LOOK_SECONDS = 0.05
# Separate threads, so that services that start slowly do not delay other operations.
_THREADS = ThreadPoolExecutor(8, "services")


class LocalPlace:
    """The processes of one service."""

    def __init__(self, name: str, context: Context) -> None:
        self._name = name
        self._context = context
        self._folder: ServiceFolder = context.folder.service(name)

    async def deploy(
        self,
        record: ServiceRecord,
        spec: ServiceSpec,
        generation: int,
        sources: Mapping[str, str] | None,
        say: Callable[[str], None],
    ) -> Deployed:
        made = await make_plan(record, spec, generation, self._context, sources, say)
        say(f"starting {made.plan.replicas} replica(s)")
        state = await self._bring_up(made.plan)
        return Deployed(record.host, state.port, (*made.warnings, *state.warnings))

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
            f"the supervisor of service {self._name} was killed {_STARTS} times in a row",
            hint=f"See {ServiceFiles(self._folder.path).log}.",
        )

    async def is_running(self) -> bool:
        return control.supervisor(self._folder.path) is not None

    async def watch(self, tell: Callable[[], None]) -> None:
        supervisor = control.supervisor(self._folder.path)
        if supervisor is not None:
            await wait_for_pid(supervisor.pid)
            log.warning("service %s: its supervisor %d is gone", self._name, supervisor.pid)

    async def remove(self) -> None:
        await end_processes(self._folder.path)

    async def change_keys(self, keys: Mapping[str, str]) -> None:
        """Replicas read the file with the keys when it changes."""

    def describe(self, record: ServiceRecord) -> ServiceRecord:
        state = _state_of(self._folder.path)
        if state is None:
            return record
        warnings = tuple(dict.fromkeys((*record.warnings, *state.warnings)))
        if record.state is ServiceState.HEALTHY and state.state != "ready":
            return replace(record, state=ServiceState.UNHEALTHY, error=dict(state.error), warnings=warnings)
        return replace(record, warnings=warnings)

    async def close(self) -> None:
        """There is nothing to close."""


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


def _state_of(folder: Path) -> State | None:
    with suppress(WebserviceException):
        seen = control.look(folder)
        if seen.state is not None and not seen.alive:
            return replace(seen.state, state="unhealthy")
        return seen.state
    return None
