"""How busy the machine of the workspace is now."""

from __future__ import annotations

import asyncio
import time

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.machine_use import Sample, WorkspaceUse, measure_machine, measure_runs, take_sample
from trainmaster.dispatcher.operation import operation
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.engines.plans import read_claim
from trainmaster.shared.attempts import current_attempt

_MOMENT = 0.2
_OLDEST = 30.0
_KEPT = 1.0


class MachineUseOperations:
    """How busy the machine of the workspace is now."""

    def __init__(self, context: Context, scheduler: Scheduler) -> None:
        self._context = context
        self._scheduler = scheduler
        self._last: Sample | None = None
        self._answer: tuple[float, WorkspaceUse] | None = None
        self._turn = asyncio.Lock()

    @operation("workspace.use")
    async def measure(self) -> WorkspaceUse:
        """CPUs, memory, disk and GPUs of the dispatcher's machine now, and what each run on it uses."""
        async with self._turn:
            # However many pages are open, the processes are looked at once a second.
            if self._answer is None or time.monotonic() - self._answer[0] > _KEPT:
                self._answer = time.monotonic(), await self._measure()
            return self._answer[1]

    async def _measure(self) -> WorkspaceUse:
        before = self._last
        if before is None or time.monotonic() - before.at > _OLDEST:
            before = await asyncio.to_thread(take_sample)
            await asyncio.sleep(_MOMENT)
        held = self._scheduler.held_nodes
        local = [target for target in held if self._scheduler.target(target).engine == "local"]
        runs = {run_id: nodes for target in local for run_id, nodes in held[target].items()}
        return await asyncio.to_thread(self._compare, before, runs)

    def _compare(self, before: Sample, runs: dict[str, tuple[int, ...]]) -> WorkspaceUse:
        agents = {run_id: self._list_agents(run_id, len(nodes)) for run_id, nodes in runs.items()}
        now = self._last = take_sample()
        folder = str(self._context.folder.path)
        return WorkspaceUse(measure_machine(before, now, folder), measure_runs(before, now, agents))

    def _list_agents(self, run_id: str, count: int) -> list[int]:
        """The process ids of the agents of a run."""
        folder = current_attempt(self._context.folder.run(run_id))
        claims = (read_claim(folder.node(number)) for number in range(count))
        return [int(claim["pid"]) for claim in claims if claim and str(claim.get("pid", "")).isdecimal()]
