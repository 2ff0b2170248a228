"""The engine for this machine: node agents as processes beside the dispatcher."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Ending, Nodes, Place
from trainmaster.engines.local.agent_pool import AgentPool, PooledAgent, PreloadedPool, modules_to_preload
from trainmaster.engines.pids import wait_for_pid
from trainmaster.engines.plans import read_claim, write_plans
from trainmaster.job.agent import containers, process, tree
from trainmaster.job.agent.plan import PlanError
from trainmaster.job.agent.plan import read as read_plan
from trainmaster.job.agent.shortage import is_temporary
from trainmaster.job.errors import ServiceException
from trainmaster.shared.hardware import cpus, node_gpus
from trainmaster.shared.host import host_name
from trainmaster.shared.node_limits import limits_of
from trainmaster.shared.records import RunError, Status

log = logging.getLogger("trainmaster.engines")

# Pauses before an agent that ended without claiming its plan is replaced.
_PAUSES = (0.1, 1.0, 5.0)
# After two agents within this time, many more are expected.
_BURST_SECONDS = 2.0


class LocalEngine:
    """Starts agents that outlive the dispatcher, and watches them through pidfds."""

    queues = False
    shares_files = True
    runs_here = True

    def __init__(self) -> None:
        self._kits: dict[Path, str] = {}
        """Folder of a node to the kit of its agent, while that agent may have to be replaced."""
        self._spawned: dict[Path, int] = {}
        self._pooled: dict[Path, tuple[AgentPool, PooledAgent]] = {}
        self._pool: AgentPool | None = None
        self._preloaded: dict[tuple[str, str, tuple[str, ...]], PreloadedPool] = {}
        self._last_start = -_BURST_SECONDS

    def place(self, nodes: Nodes) -> Place:
        """Parts of this machine."""
        return Place(
            hosts=("127.0.0.1",) * len(nodes.numbers),
            gpus=tuple(node_gpus(nodes.target, number) for number in nodes.numbers),
            cpus=cpus(),
            python=sys.executable,
            limits=_limits(nodes),
        )

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        if nodes.folder.attempt == 1:
            # One mkdir is faster than the failed one, and those after it, of makedirs.
            with contextlib.suppress(FileExistsError):
                os.mkdir(nodes.folder.nodes)
        write_plans(nodes, plans)
        for plan in plans:
            folder = nodes.folder.node(plan["node"])
            self._kits[folder] = kit
            pool = self._pool_with_modules(plan, kit) or self._common_pool(kit)
            agent = await pool.start(folder) if pool is not None else None
            if pool is not None and agent is not None:
                self._pooled[folder] = pool, agent
            else:
                self._spawned[folder] = _spawn_agent(folder, kit)

    def _pool_with_modules(self, plan: Mapping[str, Any], kit: str) -> AgentPool | None:
        """The pool for a script that wants modules preloaded; None if it wants none or the pool is not ready."""
        processes = plan["processes"]
        modules = modules_to_preload(processes[0]) if len(processes) == 1 else ()
        if not modules:
            return None
        key = (kit, processes[0]["argv"][0], modules)
        pool = self._preloaded.get(key)
        if pool is not None and pool.is_open:
            return pool if pool.is_ready else None
        if pool is not None and pool.has_failed_recently:
            return None
        with contextlib.suppress(OSError):
            self._preloaded[key] = PreloadedPool(kit, processes[0])
        return None

    def _common_pool(self, kit: str) -> AgentPool | None:
        """The pool for agents in quick succession; the first two are started directly."""
        before, self._last_start = self._last_start, time.monotonic()
        if self._pool is not None and self._pool.kit == kit and self._pool.is_open:
            return self._pool
        if self._last_start - before < _BURST_SECONDS:
            with contextlib.suppress(OSError):
                self._pool = AgentPool(kit)
        return None

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        folder = nodes.folder.node(number)
        for pause in (*_PAUSES, None):
            succeeded = await self._wait_for_agent(folder)
            if succeeded or pause is None or not self._is_unclaimed(folder):
                break
            log.warning("run %s: the agent of node %d ended before it claimed its plan", nodes.run_id, number)
            await asyncio.sleep(pause)
            if not self._is_unclaimed(folder):
                break
            self._spawned[folder] = _spawn_agent(folder, self._kits[folder])
        self._kits.pop(folder, None)

    def _is_unclaimed(self, folder: Path) -> bool:
        """Whether we started an agent for the plan and no agent has claimed it. Then another one may be started."""
        return folder in self._kits and (folder / "plan.json").exists() and read_claim(folder) is None

    async def _wait_for_agent(self, folder: Path) -> bool:
        """Returns when no agent executes the plan: True if an agent of a pool says that it succeeded."""
        pooled, spawned = self._pooled.get(folder), self._spawned.get(folder)
        if pooled is not None:
            pool, agent = pooled
            spawned = agent.pid
            succeeded = await pool.wait_for_end(agent)
            self._forget(folder)
            if succeeded:
                return True
        elif spawned is not None:
            await wait_for_pid(spawned)
            self._forget(folder)
        # An agent that an earlier dispatcher started may have the claim.
        claim = read_claim(folder)
        if claim is not None and claim["pid"] != spawned and _is_working(claim, folder):
            await wait_for_pid(claim["pid"])
        return False

    def _forget(self, folder: Path) -> None:
        self._pooled.pop(folder, None)
        self._spawned.pop(folder, None)

    async def stop(self, nodes: Nodes) -> None:
        self._signal(nodes, signal.SIGTERM)

    async def kill(self, nodes: Nodes) -> None:
        self._signal(nodes, signal.SIGKILL)

    def _signal(self, nodes: Nodes, number: signal.Signals) -> None:
        for node in range(nodes.count):
            folder = nodes.folder.node(node)
            self._kits.pop(folder, None)
            claim = read_claim(folder)
            pid = self._spawned.get(folder)
            if folder in self._pooled:
                _, agent = self._pooled[folder]
                agent.was_signalled = True
                pid = agent.pid
            # An agent without a claim has started nothing, so a signal may end it.
            if claim is not None and _is_working(claim, folder):
                pid = claim["pid"]
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    async def sweep(self, nodes: Nodes) -> None:
        for number in range(nodes.count):
            claim = read_claim(nodes.folder.node(number)) or {}
            await asyncio.to_thread(_remove_containers, nodes.folder.node(number))
            await asyncio.to_thread(tree.sweep, nodes.run_id, claim.get("cgroup"), ())

    def waiting_for(self, nodes: Nodes) -> str:
        return ""

    async def ending(self, nodes: Nodes) -> Ending | None:
        for number in range(nodes.count):
            folder = nodes.folder.node(number)
            if (folder / "result.json").exists():
                continue
            claim = read_claim(folder) or {}
            host = claim.get("host")
            # Another machine had the dispatcher of the workspace, and started the run there.
            if host and host != host_name() and not _is_working(claim, folder):
                message = (
                    f"the run was on the machine {host}, which no longer serves the workspace; its processes are gone\n"
                    "Submit the run again."
                )
                return Ending(Status.FAILED, RunError("NodeAgentLost", message, {"node": number, "host": host}))
        return None

    async def find_unreachable(self, nodes: Nodes) -> frozenset[int]:
        return frozenset()

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        for pool in (self._pool, *self._preloaded.values()):
            if pool is not None:
                pool.close()


def _limits(nodes: Nodes) -> tuple[Mapping[str, int | None], ...]:
    """The limits of each agent. Under MPI there is one agent for all nodes."""
    numbers = nodes.numbers if nodes.count == len(nodes.numbers) else nodes.numbers[:1]
    together = len(nodes.numbers) // len(numbers) if numbers else 1
    found = [limits_of(nodes.target, together, number) for number in numbers]
    return tuple(
        {"cpus": each.cpus, "memory": each.memory, "first_cpu": each.first_cpu} for each in found if each is not None
    )


def _is_working(claim: dict[str, Any], folder: Path) -> bool:
    """Whether the agent of this claim still executes the plan: after the result it may have taken another one."""
    if claim.get("cancelled") or (folder / "result.json").exists():
        # A cancelled claim is that of a dispatcher which keeps agents from starting: it has no agent.
        return False
    return bool(process.is_alive(claim["pid"], claim["start_time"], claim["boot_id"]))


def _remove_containers(folder: Path) -> None:
    """Removes the containers of an agent that was killed."""
    with contextlib.suppress(PlanError):
        containers.remove(read_plan(str(folder / "plan.json")).processes)


def _spawn_agent(folder: Path, kit: str) -> int:
    null, append = os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", f"{kit}/trainmaster/job/agent/__main__.py", str(folder / "plan.json")],
            # For a dispatcher that the agent may have to start; the script gets the variables of its plan.
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, null, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(folder / "agent.log"), append, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        if is_temporary(error):
            raise
        raise ServiceException("the node agent could not be started", cause=str(error)) from None
