"""This machine: node agents as processes beside the dispatcher."""

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
from trainmaster.engines.local.agent_pool import Agent, AgentPool, WarmNursery, warm_modules
from trainmaster.engines.pids import pid_ended
from trainmaster.engines.plans import read_claim, write_plans
from trainmaster.job.agent import containers, process, tree
from trainmaster.job.agent.plan import PlanError
from trainmaster.job.agent.plan import read as read_plan
from trainmaster.job.agent.shortage import is_temporary
from trainmaster.job.errors import ServiceException
from trainmaster.shared.hardware import cpus, node_gpus

log = logging.getLogger("trainmaster.engines")

# Seconds before an agent that ended without claiming its plan is replaced, each time.
_PAUSES = (0.1, 1.0, 5.0)
# Two agents within this time are taken for the first of many.
_CLOSE_SECONDS = 2.0


class LocalEngine:
    """Starts agents detached, so that they outlive the dispatcher, and watches them through pidfds."""

    queues = False
    shares_files = True
    runs_here = True

    def __init__(self) -> None:
        self._kits: dict[Path, str] = {}
        """Folder of a node to the kit its agent was started from, as long as that agent may have to be replaced."""
        self._spawned: dict[Path, int] = {}
        self._lent: dict[Path, tuple[AgentPool, Agent]] = {}
        self._nursery: AgentPool | None = None
        self._warm: dict[tuple[str, str, tuple[str, ...]], WarmNursery] = {}
        self._last_start = -_CLOSE_SECONDS

    def place(self, nodes: Nodes) -> Place:
        """Parts of this machine."""
        return Place(
            hosts=("127.0.0.1",) * len(nodes.numbers),
            gpus=tuple(node_gpus(nodes.target, number) for number in nodes.numbers),
            cpus=cpus(),
            python=sys.executable,
        )

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        if nodes.folder.attempt == 1:
            # The one folder above all of them, which would be missed first and made then.
            with contextlib.suppress(FileExistsError):
                os.mkdir(nodes.folder.nodes)
        write_plans(nodes, plans)
        for plan in plans:
            folder = nodes.folder.node(plan["node"])
            self._kits[folder] = kit
            nursery = self._warm_nursery(plan, kit) or self._common_nursery(kit)
            agent = await nursery.start(folder) if nursery is not None else None
            if nursery is not None and agent is not None:
                self._lent[folder] = nursery, agent
            else:
                self._spawned[folder] = _spawn_agent(folder, kit)

    def _warm_nursery(self, plan: Mapping[str, Any], kit: str) -> AgentPool | None:
        """For a script that asks for a Python with imports; until there is one, it is started like all others."""
        processes = plan["processes"]
        modules = warm_modules(processes[0]) if len(processes) == 1 else ()
        if not modules:
            return None
        key = (kit, processes[0]["argv"][0], modules)
        nursery = self._warm.get(key)
        if nursery is not None and nursery.lives:
            return nursery if nursery.is_ready else None
        if nursery is not None and nursery.rests:
            return None
        with contextlib.suppress(OSError):
            self._warm[key] = WarmNursery(kit, processes[0])
        return None

    def _common_nursery(self, kit: str) -> AgentPool | None:
        """For agents that come one soon after the other; the first ones of them are started directly."""
        before, self._last_start = self._last_start, time.monotonic()
        if self._nursery is not None and self._nursery.kit == kit and self._nursery.lives:
            return self._nursery
        if self._last_start - before < _CLOSE_SECONDS:
            with contextlib.suppress(OSError):
                self._nursery = AgentPool(kit)
        return None

    async def ended(self, nodes: Nodes, number: int) -> None:
        folder = nodes.folder.node(number)
        for pause in (*_PAUSES, None):
            carried_out = await self._agent_ended(folder)
            if carried_out or pause is None or not self._is_unclaimed(folder):
                break
            log.warning("run %s: the agent of node %d ended before it claimed its plan", nodes.run_id, number)
            await asyncio.sleep(pause)
            if not self._is_unclaimed(folder):
                break
            self._spawned[folder] = _spawn_agent(folder, self._kits[folder])
        self._kits.pop(folder, None)

    def _is_unclaimed(self, folder: Path) -> bool:
        """Whether the plan that we started an agent for is in nobody's hands. Then another one may be started."""
        return folder in self._kits and (folder / "plan.json").exists() and read_claim(folder) is None

    async def _agent_ended(self, folder: Path) -> bool:
        """Returns when no agent has the plan in hand; whether one says that it carried it out."""
        lent, spawned = self._lent.get(folder), self._spawned.get(folder)
        if lent is not None:
            nursery, agent = lent
            spawned = agent.pid
            carried_out = await nursery.ended(agent)
            self._forget(folder)
            if carried_out:
                return True
        elif spawned is not None:
            await pid_ended(spawned)
            self._forget(folder)
        # Another agent may have won the claim: one that an earlier dispatcher started.
        claim = read_claim(folder)
        if claim is not None and claim["pid"] != spawned and _works(claim, folder):
            await pid_ended(claim["pid"])
        return False

    def _forget(self, folder: Path) -> None:
        self._lent.pop(folder, None)
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
            if folder in self._lent:
                _, agent = self._lent[folder]
                agent.is_told = True
                pid = agent.pid
            # An agent that has not claimed its plan yet has started nothing: it may simply go.
            if claim is not None and _works(claim, folder):
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
        return None

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        """Agents need nobody."""
        for nursery in (self._nursery, *self._warm.values()):
            if nursery is not None:
                nursery.close()


def _works(claim: dict[str, Any], folder: Path) -> bool:
    """Whether the agent of this claim carries out its plan still: with the result it may have gone on to another."""
    if claim.get("cancelled") or (folder / "result.json").exists():
        # (The first is the claim of a dispatcher that keeps agents away: there is none.)
        return False
    return bool(process.is_alive(claim["pid"], claim["start_time"], claim["boot_id"]))


def _remove_containers(folder: Path) -> None:
    """Those that an agent left which was killed."""
    with contextlib.suppress(PlanError):
        containers.remove(read_plan(str(folder / "plan.json")).processes)


def _spawn_agent(folder: Path, kit: str) -> int:
    null, append = os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", f"{kit}/trainmaster/job/agent/__main__.py", str(folder / "plan.json")],
            # Not for the script, which gets what its plan says, but for the dispatcher that an agent may have to start.
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
