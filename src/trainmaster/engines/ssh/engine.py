"""The engine for hosts over SSH: each node of a target is a host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Ending, EngineContext, Nodes, Place
from trainmaster.engines.plans import write_plans
from trainmaster.engines.remote.channel import Host
from trainmaster.engines.remote.cleanup import Cleanup
from trainmaster.engines.remote.connection import Connection
from trainmaster.engines.remote.host import SshHost, check_ssh, hosts_of, is_shared, root_of, silence_limit
from trainmaster.engines.remote.hosted_attempt import HostedAttempt, HostPool, gather_or_cancel
from trainmaster.engines.remote.node import HostUse, RemoteNode
from trainmaster.engines.remote.plans import name_hosts
from trainmaster.engines.remote.upload import check_no_container, upload_run
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.engines.ssh import passwords
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.shared.job_spec import load_spec
from trainmaster.shared.records import RunError, Status
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

# Pauses between attempts to reach a lost host.
_CLEANUP_SECONDS, _LONGEST_CLEANUP_SECONDS = 2.0, 60.0
# Beside the plan of a node: its host, and the paths there.
_NOTE = "ssh.json"


class SshEngine:
    """Uploads code and environments to hosts, starts agents there, and mirrors their files."""

    queues = False
    shares_files = False
    uploads_folders = True
    runs_here = False

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._folder = context.folder
        self._attempts: dict[tuple[str, int], HostedAttempt] = {}
        self._hosts = context.folder.path / "hosts"
        self._cleanup = Cleanup(self._hosts)
        self._cleanups: dict[str, asyncio.Task[None]] = {}
        self._upload_pools: dict[Host, UploadPool] = {}

    def place(self, nodes: Nodes) -> Place:
        """Tokens stand for the hosts' addresses, which are known only when the hosts have been reached."""
        hosts, mpi_options = name_hosts(nodes)
        return Place(
            hosts=hosts,
            gpus=tuple(tuple(map(str, range(nodes.target.gpus_per_node))) for _ in hosts),
            cpus=nodes.target.cpus_per_node,
            python=str(nodes.target.options.get("python") or "python3"),
            mpi_options=mpi_options,
            reaches_dispatcher=False,
            relays_requests=True,
        )

    # Starting

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        check_ssh()
        attempt = self._attempt(nodes)
        await attempt.start(self._start(nodes, attempt, plans, Path(kit)))

    async def _start(self, nodes: Nodes, attempt: HostedAttempt, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        spec = load_spec(nodes.folder.spec.read_text())
        check_no_container(spec)
        write_plans(nodes, plans)
        facts = await attempt.connect()
        remotes = attempt.remotes
        await gather_or_cancel(self._cleanup.remove_remains(remote.connection) for remote in remotes)
        # A shared folder is filled through the first host.
        environments = await gather_or_cancel(
            upload_run(remote.connection, nodes, spec, self._folder, kit, remote.report)
            for remote in (remotes[:1] if is_shared(nodes.target) else remotes)
        )
        environments += environments[:1] * (len(remotes) - len(environments))
        addresses = [each.address for each in facts]
        await attempt.start_agents(spec, plans, kit, self.place(nodes).python, environments, addresses)

    # Following

    async def wait_for_end(self, nodes: Nodes, number: int) -> None:
        await self._attempt(nodes).follow(number)

    async def stop(self, nodes: Nodes) -> None:
        await self._attempt(nodes).stop()

    async def kill(self, nodes: Nodes) -> None:
        await self._attempt(nodes).kill()

    async def sweep(self, nodes: Nodes) -> None:
        await self._attempt(nodes).sweep(remove=False)

    def _clean_up_later(self, remote: RemoteNode) -> None:
        """Removes what is left of a run as soon as the host can be reached again."""
        label = remote.host.label
        self._cleanup.note(label, remote.run_id, remote.kit)
        task = self._cleanups.get(label)
        if task is None or task.done():
            self._cleanups[label] = start_task(f"cleanup of {label}", partial(self._clean_up, remote.host))

    async def _clean_up(self, host: Host) -> None:
        backoff = Backoff(_CLEANUP_SECONDS, _LONGEST_CLEANUP_SECONDS, factor=1.5)
        while self._cleanup.runs(host.label):
            await backoff.sleep()
            with contextlib.suppress(TrainmasterError):
                await self._upload_pools[host].remove_remains()

    def waiting_for(self, nodes: Nodes) -> str:
        return self._attempt(nodes).activity

    async def ending(self, nodes: Nodes) -> Ending | None:
        lost = self._attempt(nodes).lost
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
        limit = silence_limit(nodes.target)
        found = await asyncio.gather(*(self._is_reachable(host, limit) for host in self._hosts_of(nodes)))
        return frozenset(place for place, is_reachable in enumerate(found) if not is_reachable)

    async def _is_reachable(self, host: Host, limit: float) -> bool:
        try:
            connection = await Connection.open(host, root_of(host, self._folder), limit)
        except TrainmasterError:
            return False
        await connection.close()
        return True

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        """Removes the run's folders on the hosts."""
        attempt = self._attempt(nodes)
        await attempt.sweep(remove=True)
        for key in [key for key in self._attempts if key[0] == nodes.run_id]:
            await self._attempts.pop(key).close()
        return {"ssh.hosts": ", ".join(remote.host.label for remote in attempt.remotes)}

    async def close(self) -> None:
        for task in self._cleanups.values():
            task.cancel()
        await asyncio.gather(*self._cleanups.values(), return_exceptions=True)
        for pool in self._upload_pools.values():
            await pool.close()
        for attempt in self._attempts.values():
            await attempt.close()

    # The hosts of a run

    def _attempt(self, nodes: Nodes) -> HostedAttempt:
        key = (nodes.run_id, nodes.folder.attempt)
        if key not in self._attempts:
            limit = silence_limit(nodes.target)
            hosts = [(host, self._use(host, limit)) for host in self._hosts_of(nodes)]
            for host, use in hosts:
                self._upload_pools.setdefault(host, UploadPool(host, use.root, limit, self._cleanup))
            pool = HostPool(self._upload_pools.__getitem__, self._clean_up_later)
            self._attempts[key] = HostedAttempt(self._context, nodes, hosts, pool, is_shared(nodes.target))
        return self._attempts[key]

    def _use(self, host: Host, limit: float) -> HostUse:
        return HostUse(root_of(host, self._folder), limit, _NOTE, is_lost=lambda silent: silent > limit)

    def _hosts_of(self, nodes: Nodes) -> list[SshHost]:
        """The hosts of a run, in the order of its nodes."""
        known = hosts_of(nodes.target)
        try:
            hosts = [known[number] for number in nodes.numbers]
        except IndexError:
            raise ComputeTargetException(
                f"target '{nodes.target.name}' no longer has all hosts that the run needs"
            ) from None
        return [replace(host, variables=partial(self._variables, host)) for host in hosts]

    def _variables(self, host: SshHost) -> dict[str, str]:
        """The variables that ssh needs for a password."""
        secret = self._context.secret(host.secret) if host.secret else None
        return passwords.variables(secret, self._hosts) if secret else {}
