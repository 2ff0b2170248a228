"""The engine for hosts over SSH: each node of a target is a host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from trainmaster.engines.engine import Ending, EngineContext, JobRequest, Nodes, Place
from trainmaster.engines.plans import write_plans
from trainmaster.engines.remote.cleanup import Cleanup
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.data import read_run_data
from trainmaster.engines.remote.host import SshHost, check_ssh, hosts_of, is_shared, root_of, silence_limit
from trainmaster.engines.remote.on_demand import upload_on_demand
from trainmaster.engines.remote.plans import node_path
from trainmaster.engines.remote.upload import check_no_container, upload_run
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.engines.ssh import mpi, passwords
from trainmaster.engines.ssh.node import RemoteNode
from trainmaster.engines.ssh.starting import check_same_root, has_helpers, make_orders
from trainmaster.job.agent import silence, tokens
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.shared.job_spec import load_spec
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError, Status
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

T = TypeVar("T")

# Pauses between attempts to reach a lost host.
_CLEANUP_SECONDS, _LONGEST_CLEANUP_SECONDS = 2.0, 60.0


class SshEngine:
    """Uploads code and environments to hosts, starts agents there, and mirrors their files."""

    queues = False
    shares_files = False
    runs_here = False

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._folder = context.folder
        self._nodes: dict[Path, RemoteNode] = {}
        self._owners: dict[str, dict[str, int]] = {}
        self._ended: dict[tuple[str, int], set[int]] = {}
        self._shared_growth_at: dict[str, float] = {}
        self._hang_limits: dict[str, float | None] = {}
        self._starting: dict[str, asyncio.Future[None]] = {}
        self._cancelled: set[str] = set()
        """Runs that were cancelled while they were being started."""
        self._hosts = context.folder.path / "hosts"
        self._cleanup = Cleanup(self._hosts)
        self._cleanups: dict[str, asyncio.Task[None]] = {}
        self._upload_pools: dict[SshHost, UploadPool] = {}

    def place(self, nodes: Nodes) -> Place:
        """Tokens stand for the hosts' addresses, which are known only when the hosts have been reached."""
        count = len(nodes.numbers)
        hosts = tuple(tokens.host_token(number) for number in range(count)) if count > 1 else ("127.0.0.1",)
        slots = ",".join(f"{host}:{nodes.processes_per_node}" for host in hosts)
        return Place(
            hosts=hosts,
            gpus=tuple(tuple(map(str, range(nodes.target.gpus_per_node))) for _ in hosts),
            cpus=nodes.target.cpus_per_node,
            python=str(nodes.target.options.get("python") or "python3"),
            mpi_options=("--host", slots) if count > 1 else (),
            reaches_dispatcher=False,
            relays_requests=True,
        )

    # Starting

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        check_ssh()
        remotes = self._remotes(nodes)
        work = self._starting[nodes.run_id] = asyncio.ensure_future(self._start(nodes, remotes, plans, Path(kit)))
        try:
            await work
        except asyncio.CancelledError:
            if nodes.run_id not in self._cancelled:
                # The dispatcher ends; the next one starts the run again.
                for remote in remotes:
                    await remote.close()
                raise
            await self._take_back(remotes)
        except Exception:
            await self._take_back(remotes)
            raise
        finally:
            del self._starting[nodes.run_id]
            self._cancelled.discard(nodes.run_id)

    async def _start(
        self, nodes: Nodes, remotes: Sequence[RemoteNode], plans: Sequence[dict[str, Any]], kit: Path
    ) -> None:
        spec = load_spec(nodes.folder.spec.read_text())
        check_no_container(spec)
        write_plans(nodes, plans)
        facts = [each.facts for each in await gather_or_cancel(remote.connect() for remote in remotes)]
        check_same_root(nodes, facts)
        await gather_or_cancel(self._cleanup.remove_remains(remote.connection) for remote in remotes)
        shared = is_shared(nodes.target)
        # A shared folder is filled through the first host.
        environments = await gather_or_cancel(
            upload_run(remote.connection, nodes, spec, self._folder, kit, remote.report)
            for remote in (remotes[:1] if shared else remotes)
        )
        environments += environments[:1] * (len(remotes) - len(environments))
        python = self.place(nodes).python
        orders = make_orders(nodes, spec, self._folder, plans, kit, python, facts, environments)
        for remote in remotes:
            remote.note(f"kits/{kit.name}")
        attempt = nodes.folder.attempt
        await gather_or_cancel(
            remote.start(order, attempt, shared) for remote, order in zip(remotes, orders, strict=True)
        )

    async def _take_back(self, remotes: Sequence[RemoteNode]) -> None:
        """Removes a run that was not started on all hosts from every host."""
        for remote in remotes:
            was_connected = remote.is_connected
            # The connection may be in the middle of a frame: a new one is needed.
            await remote.close()
            if was_connected:
                with contextlib.suppress(TrainmasterError):
                    await remote.sweep(remove=True)
                    remote.forget()
            await remote.close()

    # Following

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        remotes = self._remotes(nodes)
        if not remotes[number].kit:
            # No agent was started.
            return
        await self._follow(nodes, remotes[number], remotes[1:] if has_helpers(nodes) else [])

    async def _follow(self, nodes: Nodes, remote: RemoteNode, helpers: Sequence[RemoteNode]) -> None:
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
        await self._fetch_late_files(nodes, remote)
        for each in (remote, *helpers):
            if each.lost is not None:
                self._clean_up_later(each)

    async def _fetch_late_files(self, nodes: Nodes, remote: RemoteNode) -> None:
        """In a shared folder the first node reports the files of all nodes; others may have written after its end."""
        ended = self._ended.setdefault((nodes.run_id, nodes.folder.attempt), set())
        ended.add(remote.number)
        if is_shared(nodes.target) and remote.number > 0 and len(ended) == nodes.count and remote.lost is None:
            await remote.look_again()

    async def stop(self, nodes: Nodes) -> None:
        work = self._starting.get(nodes.run_id)
        if work is not None:
            self._cancelled.add(nodes.run_id)
            work.cancel()
            return
        for remote in self._remotes(nodes):
            await remote.stop()

    async def kill(self, nodes: Nodes) -> None:
        for remote in self._remotes(nodes):
            await remote.kill()

    async def sweep(self, nodes: Nodes) -> None:
        await self._sweep(nodes, remove=False)

    async def _sweep(self, nodes: Nodes, remove: bool) -> None:
        remotes = [remote for remote in self._remotes(nodes) if remote.kit]
        await asyncio.gather(*(self._sweep_node(remote, remove) for remote in remotes))

    async def _sweep_node(self, remote: RemoteNode, remove: bool) -> None:
        try:
            if remote.lost is not None:
                # We have waited for this host long enough.
                raise remote.lost
            await remote.sweep(remove)
        except ComputeTargetException:
            self._clean_up_later(remote)
        finally:
            await remote.close()

    def _clean_up_later(self, remote: RemoteNode) -> None:
        """Removes what is left of a run as soon as the host can be reached again."""
        label = remote.host.label
        self._cleanup.note(label, remote.run_id, remote.kit)
        task = self._cleanups.get(label)
        if task is None or task.done():
            self._cleanups[label] = start_task(f"cleanup of {label}", partial(self._clean_up, remote))

    async def _clean_up(self, remote: RemoteNode) -> None:
        backoff = Backoff(_CLEANUP_SECONDS, _LONGEST_CLEANUP_SECONDS, factor=1.5)
        while self._cleanup.runs(remote.host.label):
            await backoff.sleep()
            with contextlib.suppress(TrainmasterError):
                await self._upload_pool(remote).remove_remains()

    def waiting_for(self, nodes: Nodes) -> str:
        return next((remote.activity for remote in self._remotes(nodes) if remote.activity), "")

    async def ending(self, nodes: Nodes) -> Ending | None:
        lost = next((remote for remote in self._remotes(nodes) if remote.lost is not None), None)
        if lost is None or lost.lost is None:
            return None
        host = lost.host.label
        message = (
            f"node {lost.number} (host {host}) did not answer for {lost.silence:g} seconds: {lost.lost.message}\n"
            "What still runs there is ended as soon as the host can be reached again."
        )
        return Ending(Status.FAILED, RunError("NodeAgentLost", message, {"node": lost.number, "host": host}))

    async def find_unreachable(self, nodes: Nodes) -> frozenset[int]:
        """Connects to every host."""
        hosts, limit = hosts_of(nodes.target), silence_limit(nodes.target)
        found = await asyncio.gather(*(self._is_reachable(hosts[number], limit) for number in nodes.numbers))
        return frozenset(place for place, is_reachable in enumerate(found) if not is_reachable)

    async def _is_reachable(self, host: SshHost, limit: float) -> bool:
        try:
            connection = await Connection.open(host, root_of(host, self._folder), limit, self._variables(host))
        except TrainmasterError:
            return False
        await connection.close()
        return True

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        """Removes the run's folders on the hosts."""
        await self._sweep(nodes, remove=True)
        hosts = ", ".join(remote.host.label for remote in self._remotes(nodes))
        self._nodes = {folder: remote for folder, remote in self._nodes.items() if remote.run_id != nodes.run_id}
        self._ended = {key: numbers for key, numbers in self._ended.items() if key[0] != nodes.run_id}
        self._owners.pop(nodes.run_id, None)
        self._shared_growth_at.pop(nodes.run_id, None)
        self._hang_limits.pop(nodes.run_id, None)
        return {"ssh.hosts": hosts}

    async def close(self) -> None:
        for task in self._cleanups.values():
            task.cancel()
        await asyncio.gather(*self._cleanups.values(), return_exceptions=True)
        for pool in self._upload_pools.values():
            await pool.close()
        for remote in self._nodes.values():
            await remote.close()

    # The nodes of a run

    def _remotes(self, nodes: Nodes) -> list[RemoteNode]:
        """All nodes of the run, in their order."""
        known = hosts_of(nodes.target)
        try:
            hosts = [known[number] for number in nodes.numbers]
        except IndexError:
            raise ComputeTargetException(
                f"target '{nodes.target.name}' no longer has all hosts that the run needs"
            ) from None
        return [self._remote(nodes, number, host) for number, host in enumerate(hosts)]

    def _remote(self, nodes: Nodes, number: int, host: SshHost) -> RemoteNode:
        folder = nodes.folder.node(number)
        if folder not in self._nodes:
            self._nodes[folder] = RemoteNode(
                host,
                root_of(host, self._folder),
                nodes.run_id,
                nodes.folder,
                number,
                common=number == 0 or not is_shared(nodes.target),
                silence=silence_limit(nodes.target),
                owners=None if is_shared(nodes.target) else self._owners.setdefault(nodes.run_id, {}),
                data=read_run_data(nodes.folder),
                on_file=lambda name: self._on_file(nodes, number, name),
                on_growth=lambda: self._on_growth(nodes, number),
                on_request=lambda name, text: self._on_request(nodes, number, name, text),
                variables=partial(self._variables, host),
            )
        return self._nodes[folder]

    def _variables(self, host: SshHost) -> dict[str, str]:
        """The variables that ssh needs for a password."""
        secret = self._context.secret(host.secret) if host.secret else None
        return passwords.variables(secret, self._hosts) if secret else {}

    def _upload_pool(self, remote: RemoteNode) -> UploadPool:
        host = remote.host
        if host not in self._upload_pools:
            root, variables = root_of(host, self._folder), partial(self._variables, host)
            self._upload_pools[host] = UploadPool(host, root, remote.silence, self._cleanup, variables)
        return self._upload_pools[host]

    # What hosts report

    async def _on_file(self, nodes: Nodes, number: int, name: str) -> None:
        """A node wrote one of its small files."""
        event = {"running.json": "running", "done.json": "done"}.get(name.rpartition("/")[2])
        if event == "done" or (event and name.startswith(f"{node_path(nodes, 0)}/")):
            self._context.on_event(nodes.run_id, event)
        elif name.endswith(f"/{silence.NAME}"):
            # One node hangs, so all do: the others have to report where they are.
            await self._put_on_others(nodes, number, name, (nodes.folder.path / name).read_bytes())
        elif has_helpers(nodes):
            await self._forward_mpi_request(nodes, name)

    def _on_request(self, nodes: Nodes, number: int, name: str, text: bytes) -> None:
        """A script sent a job request; the answer goes to its host."""
        remote = self._remotes(nodes)[number]
        bring = partial(upload_on_demand, self._upload_pool(remote), nodes.run_id, name, remote.silence)
        self._context.on_request(JobRequest(nodes.run_id, name, text, partial(remote.answer, name), bring))

    async def _on_growth(self, nodes: Nodes, number: int) -> None:
        """A node wrote something. The other nodes hear of it, because each sees only its own files."""
        limit = self._hang_limit(nodes)
        now = time.monotonic()
        last = self._shared_growth_at.get(nodes.run_id, 0.0)
        if limit is None or is_shared(nodes.target) or now < last + limit / 8:
            return
        self._shared_growth_at[nodes.run_id] = now
        await self._put_on_others(nodes, number, "journals/.heard", b"")

    def _hang_limit(self, nodes: Nodes) -> float | None:
        """How long the nodes of the run may be silent; None if there is no limit or only one node."""
        if len(nodes.numbers) == 1:
            return None
        if nodes.run_id not in self._hang_limits:
            limit = (read_json(nodes.folder.node(0) / "plan.json") or {}).get("hang_seconds")
            self._hang_limits[nodes.run_id] = None if limit is None else float(limit)
        return self._hang_limits[nodes.run_id]

    async def _put_on_others(self, nodes: Nodes, number: int, path: str, data: bytes) -> None:
        for remote in self._remotes(nodes):
            if remote.number != number:
                await remote.put(path, data)

    async def _forward_mpi_request(self, nodes: Nodes, name: str) -> None:
        """Sends what mpirun wants to start on another host to that host."""
        remotes = self._remotes(nodes)
        request = read_json(nodes.folder.path / name) or {}
        number = mpi.find_node(name, request, [remote.address for remote in remotes])
        if number is not None:
            await remotes[number].put(f"{node_path(nodes, number)}/{mpi.REQUEST}", json.dumps(request).encode())


async def gather_or_cancel(works: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all works; the first that fails cancels the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
