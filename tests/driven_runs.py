"""A workspace with the parts of a dispatcher that drive runs, and an engine whose agents live in the test."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.context import Context
from trainmaster.dispatcher.runs.driver import RunDriver
from trainmaster.dispatcher.runs.engines import Engines
from trainmaster.dispatcher.runs.procedures import Procedure
from trainmaster.dispatcher.runs.scheduler import Scheduler
from trainmaster.dispatcher.runs.updates import RunUpdates
from trainmaster.dispatcher.runs.watchers import Watchers
from trainmaster.dispatcher.secrets import Secrets
from trainmaster.dispatcher.store import Store
from trainmaster.engines import Ending, Nodes, Place
from trainmaster.engines.plans import read_claim
from trainmaster.job.agent import claim
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import EnvironmentSpec, JobSpec, dump_spec
from trainmaster.shared.records import RunRecord, Status

PATIENCE = 60.0
SPEC = JobSpec("/code", "two", script="train.py", environment=EnvironmentSpec(True, sys.executable), snapshot_id="s")


class AgentsInTest:
    """An engine whose agents do nothing but write their files, when the test says so."""

    queues = False
    shares_files = True
    runs_here = True

    def __init__(self) -> None:
        self.starts = 0
        self.errors: list[Exception] = []
        """What the next starts raise."""
        self.holds_starts = False
        self.known_ending: Ending | None = None
        self.calls: list[str] = []
        self._agents: dict[Path, asyncio.Event] = {}
        """The folder of each agent that was started; the event is set when the agent is gone."""

    def place(self, nodes: Nodes) -> Place:
        count = len(nodes.numbers)
        return Place(("127.0.0.1",) * count, ((),) * count, 1, sys.executable)

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        self.starts += 1
        if self.errors:
            raise self.errors.pop(0)
        for plan in plans:
            folder = nodes.folder.node(plan["node"])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "plan.json").write_text(json.dumps(plan))
        if self.holds_starts:
            self._agents[nodes.folder.node(0)] = asyncio.Event()
            await self._agents[nodes.folder.node(0)].wait()
            return
        for plan in plans:
            if claim.make(str(nodes.folder.node(plan["node"])), None):
                self._agents[nodes.folder.node(plan["node"])] = asyncio.Event()

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        agent = self._agents.get(nodes.folder.node(number))
        if agent is not None:
            await agent.wait()

    async def stop(self, nodes: Nodes) -> None:
        self.calls.append("stop")
        for number in range(nodes.count):
            self.finish(nodes.folder, number, reason="cancelled")

    async def kill(self, nodes: Nodes) -> None:
        self.calls.append("kill")
        for number in range(nodes.count):
            self.vanish(nodes.folder, number)

    async def sweep(self, nodes: Nodes) -> None:
        self.calls.append("sweep")

    def waiting_for(self, nodes: Nodes) -> str:
        return "waiting in the test"

    async def ending(self, nodes: Nodes) -> Ending | None:
        return self.known_ending

    async def find_unreachable(self, nodes: Nodes) -> frozenset[int]:
        return frozenset()

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        self.calls.append("release")
        return {}

    async def close(self) -> None:
        pass

    # What agents do

    def has_agent(self, folder: RunFolder, number: int = 0) -> bool:
        agent = self._agents.get(folder.node(number))
        return agent is not None and not agent.is_set()

    def run(self, folder: RunFolder, number: int = 0) -> None:
        """The script of a node starts."""
        (folder.node(number) / "running.json").write_text(json.dumps({"started_at": time.time()}))

    def finish(self, folder: RunFolder, number: int = 0, *, exit_code: int = 0, reason: str = "exited") -> None:
        """The agent of a node writes its result and ends."""
        if not self.has_agent(folder, number):
            return
        now = time.time()
        process = {"rank": 0, "exit_code": exit_code, "signal": None, "ended_at": now, "tail": "ValueError: no\n"}
        result = {
            "version": 1,
            "reason": reason,
            "first_failure": process if exit_code else None,
            "processes": [process],
            "killed": 0,
            "survivors": [],
            "error": None,
            "started_at": now,
            "ended_at": now,
        }
        if read_claim(folder.node(number)) is not None:
            (folder.node(number) / "result.json").write_text(json.dumps(result))
        self.vanish(folder, number)

    def vanish(self, folder: RunFolder, number: int = 0) -> None:
        """The agent of a node is killed."""
        if self.has_agent(folder, number):
            self._agents[folder.node(number)].set()


class Parts:
    """A workspace and the parts of a dispatcher that drive its runs."""

    def __init__(self, folder: WorkspaceFolder, store: Store, engine: AgentsInTest) -> None:
        self.folder = folder
        self.store = store
        self.engine = engine
        self.context = Context(folder, store, Secrets(folder, store), Engines(lambda name: engine))
        self.watchers = Watchers()
        self.scheduler = Scheduler(self.context)
        self.updates = RunUpdates(self.context, self.watchers)

    def add(self, run_id: str = "run", spec: JobSpec = SPEC, **changes: Any) -> RunRecord:
        """A run as submit leaves it."""
        record = RunRecord(run_id, "e", Status.NOT_STARTED, time.time(), target=spec.target, spec=dump_spec(spec))
        return self.store.runs.add(replace(record, **changes))

    def drive(self, run_id: str = "run", procedure: Procedure | None = None, **more: Any) -> Driven:
        """Takes a run as the store has it."""
        record = self.get(run_id)
        self.scheduler.add_run(record)
        driver = RunDriver(record, self.context, self.scheduler, self.updates, procedure, **more)
        return Driven(self, driver)

    def get(self, run_id: str = "run") -> RunRecord:
        record = self.store.runs.get(run_id)
        assert record is not None
        return record

    def close(self) -> None:
        self.updates.close()


class Driven:
    """A run that is being driven."""

    def __init__(self, parts: Parts, driver: RunDriver) -> None:
        self.parts = parts
        self.driver = driver
        self.seen: list[Status] = []
        self._changed = asyncio.Event()
        parts.watchers.add_listener(self)
        self.task = asyncio.create_task(driver.drive())

    def run_changed(self, record: RunRecord) -> None:
        if record.id == self.driver.run_id:
            self.seen.append(record.status)
            self._changed.set()

    def run_reported(self, run_id: str) -> None:
        pass

    @property
    def folder(self) -> RunFolder:
        return self.driver._state.folder

    async def until(self, condition: Callable[[], Any]) -> None:
        """Waits until `condition` is true. The event loop is all there is to wait for."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                assert not self.task.done(), self.parts.get(self.driver.run_id).error
                await asyncio.sleep(0)

    async def until_status(self, status: Status) -> None:
        async with asyncio.timeout(PATIENCE):
            while status not in self.seen:
                self._changed.clear()
                await self._changed.wait()

    async def until_agents(self, count: int = 1) -> None:
        engine = self.parts.engine
        await self.until(lambda: all(engine.has_agent(self.folder, number) for number in range(count)))

    async def run(self) -> None:
        """Waits for the agent, which reports that its script runs."""
        await self.until_agents()
        self.parts.engine.run(self.folder)
        self.driver.see_running()

    def cancel(self) -> None:
        """What the operation `runs.cancel` does."""
        self.parts.updates.move(self.driver.run_id, Status.CANCEL_REQUESTED)
        self.driver.cancel()

    async def until_ended(self) -> RunRecord:
        async with asyncio.timeout(PATIENCE):
            await self.task
        self.parts.scheduler.remove_run(self.driver.run_id)
        return self.parts.get(self.driver.run_id)

    async def abandon(self) -> None:
        """The dispatcher is killed."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
