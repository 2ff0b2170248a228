"""One attempt of a run on hosts: its agents are started on all of them or on none, followed, and stopped.

The engine says which hosts these are. What is written on one host and concerns the others passes through here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from trainmaster.engines.engine import EngineContext, JobRequest, Nodes
from trainmaster.engines.remote import mpi
from trainmaster.engines.remote.channel import Host
from trainmaster.engines.remote.connection import HostFacts
from trainmaster.engines.remote.data import read_run_data
from trainmaster.engines.remote.environments import RemoteEnvironment
from trainmaster.engines.remote.node import HostUse, RemoteNode
from trainmaster.engines.remote.on_demand import upload_on_demand
from trainmaster.engines.remote.plans import node_path
from trainmaster.engines.remote.starting import check_same_root, has_helpers, make_orders
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.job.agent import silence
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.shared.job_spec import JobSpec
from trainmaster.shared.json_files import read_json

T = TypeVar("T")


def _ignore(remote: RemoteNode) -> None:
    """For hosts that end with their run."""


@dataclass(frozen=True)
class HostPool:
    """What an engine provides for the hosts of an attempt."""

    uploads: Callable[[Host], UploadPool]
    """Returns the connections for uploads to a host."""
    on_remains: Callable[[RemoteNode], None] = _ignore
    """Called if something of the run may be left on a host that cannot be reached."""


class HostedAttempt:
    """An attempt whose nodes are these hosts, in the order of the run's nodes."""

    def __init__(
        self,
        context: EngineContext,
        nodes: Nodes,
        hosts: Sequence[tuple[Host, HostUse]],
        pool: HostPool,
        shared: bool = False,
    ) -> None:
        """`shared`: whether all hosts see one folder."""
        self._context = context
        self._nodes = nodes
        self._pool = pool
        self._shared = shared
        owners: dict[str, int] | None = None if shared else {}
        self.remotes = [self._make_remote(number, *each, owners) for number, each in enumerate(hosts)]
        self._ended: set[int] = set()
        self._growth_at = 0.0
        self._hang_limit: float | None = None
        self._knows_hang_limit = False
        self._starting: asyncio.Future[None] | None = None
        self._is_cancelled = False

    def _make_remote(self, number: int, host: Host, use: HostUse, owners: dict[str, int] | None) -> RemoteNode:
        nodes = self._nodes
        return RemoteNode(
            host,
            use,
            nodes.run_id,
            nodes.folder,
            number,
            common=number == 0 or not self._shared,
            owners=owners,
            data=read_run_data(nodes.folder),
            on_file=partial(self._on_file, number),
            on_growth=partial(self._on_growth, number),
            on_request=partial(self._on_request, number),
        )

    # Starting

    async def start(self, work: Awaitable[None]) -> None:
        """Does `work`, which starts the agents. `stop` gives it up; if it fails, nothing stays on any host."""
        self._starting = asyncio.ensure_future(work)
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self._is_cancelled:
                # The dispatcher ends; the next one starts the run again.
                await self.close()
                raise
            await self._take_back()
        except Exception:
            await self._take_back()
            raise
        finally:
            self._starting = None
            self._is_cancelled = False

    async def connect(self) -> list[HostFacts]:
        """Connects to all hosts."""
        facts = [each.facts for each in await gather_or_cancel(remote.connect() for remote in self.remotes)]
        check_same_root(self._nodes, facts)
        return facts

    async def start_agents(
        self,
        spec: JobSpec,
        plans: Sequence[dict[str, Any]],
        kit: Path,
        python: str,
        environments: Sequence[RemoteEnvironment],
        addresses: Sequence[str],
    ) -> None:
        """Starts the agents on hosts that have everything; `addresses` are those under which they reach each other."""
        nodes, workspace = self._nodes, self._context.folder
        facts = [remote.connection.facts for remote in self.remotes]
        orders = make_orders(
            nodes, spec, workspace, plans, kit, python, facts, environments, addresses, shared=self._shared
        )
        for remote, address in zip(self.remotes, addresses, strict=True):
            remote.note(f"kits/{kit.name}", address)
        attempt = nodes.folder.attempt
        await gather_or_cancel(
            remote.start(order, attempt, self._shared) for remote, order in zip(self.remotes, orders, strict=True)
        )

    async def _take_back(self) -> None:
        """Removes a run that was not started on all hosts from every host."""
        for remote in self.remotes:
            was_connected = remote.is_connected
            # The connection may be in the middle of a frame: a new one is needed.
            await remote.close()
            if was_connected:
                with contextlib.suppress(TrainmasterError):
                    await remote.sweep(remove=True)
                    remote.forget()
            await remote.close()

    # Following

    async def follow(self, number: int) -> None:
        """Returns when the agent of a node has ended and all its files are here, or its host is lost."""
        remote = self.remotes[number]
        if not remote.kit:
            # No agent was started.
            return
        await self._follow(remote, self.remotes[1:] if has_helpers(self._nodes) else [])

    async def _follow(self, remote: RemoteNode, helpers: Sequence[RemoteNode]) -> None:
        """Follows a node to its end. Under MPI this is the first node, and `helpers` are the others."""
        main = asyncio.ensure_future(remote.follow())
        others = [asyncio.ensure_future(helper.follow()) for helper in helpers]
        try:
            while not main.done():
                running = {task for task in others if not task.done()}
                await asyncio.wait({main, *running}, return_when=asyncio.FIRST_COMPLETED)
                if any(helper.lost for helper in helpers):
                    # mpirun would wait for it.
                    await remote.stop()
            await main
            for helper in helpers:
                await helper.stop()
            await asyncio.gather(*others)
        finally:
            for task in (main, *others):
                task.cancel()
            await asyncio.gather(main, *others, return_exceptions=True)
        await self._fetch_late_files(remote)
        for each in (remote, *helpers):
            if each.lost is not None:
                self._pool.on_remains(each)

    async def _fetch_late_files(self, remote: RemoteNode) -> None:
        """In a shared folder the first node reports the files of all nodes; others may have written after its end."""
        self._ended.add(remote.number)
        if self._shared and remote.number > 0 and len(self._ended) == self._nodes.count and remote.lost is None:
            await remote.look_again()

    @property
    def activity(self) -> str:
        """What the run waits for, as a sentence."""
        return next((remote.activity for remote in self.remotes if remote.activity), "")

    @property
    def lost(self) -> RemoteNode | None:
        """The first node whose host is lost."""
        return next((remote for remote in self.remotes if remote.lost is not None), None)

    # Ending

    async def stop(self) -> None:
        """Asks the agents to end their processes; gives up a start."""
        if self._starting is not None:
            self._is_cancelled = True
            self._starting.cancel()
            return
        for remote in self.remotes:
            await remote.stop()

    async def kill(self) -> None:
        """Kills the agents."""
        for remote in self.remotes:
            await remote.kill()

    async def sweep(self, remove: bool) -> None:
        """Ends all processes of the run; `remove` also removes its folders on the hosts."""
        started = [remote for remote in self.remotes if remote.kit]
        await asyncio.gather(*(self._sweep_node(remote, remove) for remote in started))

    async def _sweep_node(self, remote: RemoteNode, remove: bool) -> None:
        try:
            if remote.lost is not None:
                # We have waited for this host long enough.
                raise remote.lost
            await remote.sweep(remove)
        except ComputeTargetException:
            self._pool.on_remains(remote)
        finally:
            await remote.close()

    async def close(self) -> None:
        """Closes the connections; agents continue."""
        for remote in self.remotes:
            await remote.close()

    # What hosts report

    async def _on_file(self, number: int, name: str) -> None:
        """A node wrote one of its small files."""
        nodes = self._nodes
        event = {"running.json": "running", "done.json": "done"}.get(name.rpartition("/")[2])
        if event == "done" or (event and name.startswith(f"{node_path(nodes, 0)}/")):
            self._context.on_event(nodes.run_id, event)
        elif name.endswith(f"/{silence.NAME}"):
            # One node hangs, so all do: the others have to report where they are.
            await self._put_on_others(number, name, (nodes.folder.path / name).read_bytes())
        elif has_helpers(nodes):
            await self._forward_mpi_request(name)

    def _on_request(self, number: int, name: str, text: bytes) -> None:
        """A script sent a job request; the answer goes to its host."""
        remote, run_id = self.remotes[number], self._nodes.run_id
        bring = partial(upload_on_demand, self._pool.uploads(remote.host), run_id, name, remote.silence)
        self._context.on_request(JobRequest(run_id, name, text, partial(remote.answer, name), bring))

    async def _on_growth(self, number: int) -> None:
        """A node wrote something. The other nodes hear of it, because each sees only its own files."""
        limit = self._read_hang_limit()
        now = time.monotonic()
        if limit is None or self._shared or now < self._growth_at + limit / 8:
            return
        self._growth_at = now
        await self._put_on_others(number, "journals/.heard", b"")

    def _read_hang_limit(self) -> float | None:
        """How long the nodes of the run may be silent; None if there is no limit or only one node."""
        if len(self.remotes) > 1 and not self._knows_hang_limit:
            limit = (read_json(self._nodes.folder.node(0) / "plan.json") or {}).get("hang_seconds")
            self._hang_limit = None if limit is None else float(limit)
            self._knows_hang_limit = True
        return self._hang_limit

    async def _put_on_others(self, number: int, path: str, data: bytes) -> None:
        for remote in self.remotes:
            if remote.number != number:
                await remote.put(path, data)

    async def _forward_mpi_request(self, name: str) -> None:
        """Sends what mpirun wants to start on another host to that host."""
        nodes = self._nodes
        request = read_json(nodes.folder.path / name) or {}
        number = mpi.find_node(name, request, [remote.address for remote in self.remotes])
        if number is not None:
            path = f"{node_path(nodes, number)}/{mpi.REQUEST}"
            await self.remotes[number].put(path, json.dumps(request).encode())


async def gather_or_cancel(works: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all works; the first that fails cancels the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
