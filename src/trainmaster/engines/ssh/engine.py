"""The engine for hosts over SSH: each node of a target is a host."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import Ending, EngineContext, JobRequest, Nodes, Place
from trainmaster.engines.plans import write_plans
from trainmaster.engines.ssh import mpi, passwords, starting
from trainmaster.engines.ssh.cleanup import Cleanup
from trainmaster.engines.ssh.data import freight_of
from trainmaster.engines.ssh.host import SshHost, check_ssh, hosts_of, is_shared, lost_after, root_of
from trainmaster.engines.ssh.link import Link
from trainmaster.engines.ssh.on_demand import OnDemand
from trainmaster.engines.ssh.session import HostFacts, Session
from trainmaster.engines.ssh.starting import has_helpers, within
from trainmaster.job.agent import silence, tokens
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.shared.job_spec import load_spec
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import RunError, Status
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# How often a host that was lost is looked for.
_TIDY_SECONDS, _LONGEST_TIDY_SECONDS = 2.0, 60.0


class SshEngine:
    """Brings code and environments to hosts, starts agents there, and mirrors what they write."""

    queues = False
    shares_files = False
    runs_here = False

    def __init__(self, surroundings: EngineContext) -> None:
        self._folder = surroundings.folder
        self._heard = surroundings.heard
        self._asked = surroundings.asked
        self._links: dict[Path, Link] = {}
        self._owners: dict[str, dict[str, int]] = {}
        self._ended: dict[tuple[str, int], set[int]] = {}
        self._heard_at: dict[str, float] = {}
        self._limits: dict[str, float | None] = {}
        self._starting: dict[str, asyncio.Future[None]] = {}
        self._given_up: set[str] = set()
        """Runs that were cancelled while they were being started."""
        self._secret = surroundings.secret
        self._hosts = surroundings.folder.path / "hosts"
        self._left = Cleanup(self._hosts)
        self._tidying: dict[str, asyncio.Task[None]] = {}
        self._lenders: dict[str, OnDemand] = {}

    def place(self, nodes: Nodes) -> Place:
        """The hosts' addresses are known once they were reached: until then there are tokens."""
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
        links = self._links_of(nodes)
        work = self._starting[nodes.run_id] = asyncio.ensure_future(self._start(nodes, links, plans, Path(kit)))
        try:
            await work
        except asyncio.CancelledError:
            if nodes.run_id not in self._given_up:
                # The dispatcher ends; the next one starts the run again.
                for link in links:
                    await link.close()
                raise
            await self._take_back(links)
        except Exception:
            await self._take_back(links)
            raise
        finally:
            del self._starting[nodes.run_id]
            self._given_up.discard(nodes.run_id)

    async def _start(self, nodes: Nodes, links: Sequence[Link], plans: Sequence[dict[str, Any]], kit: Path) -> None:
        spec = load_spec(nodes.folder.spec.read_text())
        starting.check_no_container(spec)
        write_plans(nodes, plans)
        facts = await together(link.connect() for link in links)
        starting.check_one_place(nodes, facts)
        await together(self._left.settle(link.session) for link in links)
        # A folder that all of them see is filled through the first.
        bringing = links[:1] if is_shared(nodes.target) else links
        settled = await together(starting.bring(link, nodes, spec, self._folder, kit) for link in bringing)
        settled += settled[:1] * (len(links) - len(settled))
        python = self.place(nodes).python
        orders = starting.orders(nodes, spec, self._folder, plans, kit, python, facts, settled)
        for link in links:
            link.note(f"kits/{kit.name}")
        attempt, shared = nodes.folder.attempt, is_shared(nodes.target)
        await together(link.start(order, attempt, shared) for link, order in zip(links, orders, strict=True))

    async def _take_back(self, links: Sequence[Link]) -> None:
        """A run that was not started on all hosts leaves nothing on any."""
        for link in links:
            reached = link.is_connected
            # It may have been broken off in the middle of a frame: what is to be said now goes over another connection.
            await link.close()
            if reached:
                with contextlib.suppress(TrainmasterError):
                    await link.sweep(remove=True)
                    link.forget()
            await link.close()

    # Following

    async def ended(self, nodes: Nodes, number: int) -> None:
        links = self._links_of(nodes)
        if not links[number].kit:
            # It never came to an agent.
            return
        await self._followed(nodes, links[number], links[1:] if has_helpers(nodes) else [])

    async def _followed(self, nodes: Nodes, link: Link, helpers: Sequence[Link]) -> None:
        """Follows a node to its end; under MPI the first one, and with it those that help it."""
        main = asyncio.ensure_future(link.follow())
        others = [asyncio.ensure_future(helper.follow()) for helper in helpers]
        try:
            while not main.done():
                going = {task for task in others if not task.done()}
                await asyncio.wait({main, *going}, return_when=asyncio.FIRST_COMPLETED)
                if any(helper.lost for helper in helpers):
                    # mpirun would wait for it.
                    await link.stop()
            await main
            for helper in helpers:
                await helper.stop()
            await asyncio.gather(*others)
        finally:
            for task in (main, *others):
                task.cancel()
            await asyncio.gather(main, *others, return_exceptions=True)
        await self._look_at_rest(nodes, link)
        for each in (link, *helpers):
            if each.lost is not None:
                self._leave(each, nodes.run_id)

    async def _look_at_rest(self, nodes: Nodes, link: Link) -> None:
        """In a shared folder the first node tells what all of them write; others may have written after its end."""
        ended = self._ended.setdefault((nodes.run_id, nodes.folder.attempt), set())
        ended.add(link.number)
        if is_shared(nodes.target) and link.number > 0 and len(ended) == nodes.count and link.lost is None:
            await link.look_again()

    async def stop(self, nodes: Nodes) -> None:
        work = self._starting.get(nodes.run_id)
        if work is not None:
            self._given_up.add(nodes.run_id)
            work.cancel()
            return
        for link in self._links_of(nodes):
            await link.stop()

    async def kill(self, nodes: Nodes) -> None:
        for link in self._links_of(nodes):
            await link.kill()

    async def sweep(self, nodes: Nodes) -> None:
        await self._sweep(nodes, remove=False)

    async def _sweep(self, nodes: Nodes, remove: bool) -> None:
        links = [link for link in self._links_of(nodes) if link.kit]
        await asyncio.gather(*(self._sweep_one(link, nodes.run_id, remove) for link in links))

    async def _sweep_one(self, link: Link, run_id: str, remove: bool) -> None:
        try:
            if link.lost is not None:
                # It was waited for long enough.
                raise link.lost
            await link.sweep(remove)
        except ComputeTargetException:
            self._leave(link, run_id)
        finally:
            await link.close()

    def _leave(self, link: Link, run_id: str) -> None:
        """What is left of a run on a host that cannot be reached is ended when it can be."""
        host = link.host
        self._left.note(host.shown, run_id, link.kit)
        task = self._tidying.get(host.shown)
        if task is None or task.done():
            self._tidying[host.shown] = start_task(f"tidying {host.shown}", partial(self._tidy, host))

    async def _tidy(self, host: SshHost) -> None:
        backoff = Backoff(_TIDY_SECONDS, _LONGEST_TIDY_SECONDS, factor=1.5)
        while self._left.runs(host.shown):
            await backoff.sleep()
            with contextlib.suppress(TrainmasterError):
                session, _ = await self._opened(host)
                try:
                    await self._left.settle(session)
                finally:
                    await session.close()

    def waiting_for(self, nodes: Nodes) -> str:
        return next((link.doing for link in self._links_of(nodes) if link.doing), "")

    async def ending(self, nodes: Nodes) -> Ending | None:
        lost = next((link for link in self._links_of(nodes) if link.lost is not None), None)
        if lost is None or lost.lost is None:
            return None
        message = (
            f"node {lost.number} (host {lost.host.shown}) was not heard of for {lost_after(nodes.target):g} seconds: "
            f"{lost.lost.message}\nWhat still runs there is ended as soon as it can be reached again."
        )
        return Ending(Status.FAILED, RunError("NodeAgentLost", message, {"node": lost.number, "host": lost.host.shown}))

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        """Asked when the run is over for good: its folders on the hosts are not needed any more."""
        await self._sweep(nodes, remove=True)
        hosts = ", ".join(link.host.shown for link in self._links_of(nodes))
        self._links = {place: link for place, link in self._links.items() if link.run_id != nodes.run_id}
        self._ended = {key: numbers for key, numbers in self._ended.items() if key[0] != nodes.run_id}
        self._owners.pop(nodes.run_id, None)
        self._heard_at.pop(nodes.run_id, None)
        self._limits.pop(nodes.run_id, None)
        return {"ssh.hosts": hosts}

    async def close(self) -> None:
        for task in self._tidying.values():
            task.cancel()
        await asyncio.gather(*self._tidying.values(), return_exceptions=True)
        for link in self._links.values():
            await link.close()

    # Who is who

    def _links_of(self, nodes: Nodes) -> list[Link]:
        """For every node of the run, in their order."""
        known = hosts_of(nodes.target)
        try:
            hosts = [known[number] for number in nodes.numbers]
        except IndexError:
            raise ComputeTargetException(f"target '{nodes.target.name}' has lost hosts that the run needs") from None
        return [self._link(nodes, number, host) for number, host in enumerate(hosts)]

    def _variables(self, host: SshHost) -> dict[str, str]:
        """What ssh needs to log in, beyond what it finds itself."""
        secret = self._secret(host.secret) if host.secret else None
        return passwords.variables(secret, self._hosts) if secret else {}

    def _link(self, nodes: Nodes, number: int, host: SshHost) -> Link:
        place = nodes.folder.node(number)
        if place not in self._links:
            self._links[place] = Link(
                host,
                self._root(host),
                nodes.run_id,
                nodes.folder,
                number,
                common=number == 0 or not is_shared(nodes.target),
                patience=lost_after(nodes.target),
                owners=None if is_shared(nodes.target) else self._owners.setdefault(nodes.run_id, {}),
                freight=freight_of(nodes.folder),
                heard=lambda name: self._on_file(nodes, number, name),
                grown=lambda: self._on_growth(nodes, number),
                asked=lambda name, text: self._on_letter(nodes, number, name, text),
                variables=lambda: self._variables(host),
            )
        return self._links[place]

    async def _on_file(self, nodes: Nodes, number: int, name: str) -> None:
        """A node wrote one of the files by which others know how it goes."""
        event = {"running.json": "running", "done.json": "done"}.get(name.rpartition("/")[2])
        if event == "done" or (event and name.startswith(f"{within(nodes, 0)}/")):
            self._heard(nodes.run_id, event)
        elif name.endswith(f"/{silence.NAME}"):
            # One hangs, all hang: the others are to say where they stand.
            await self._to_others(nodes, number, name, (nodes.folder.path / name).read_bytes())
        elif has_helpers(nodes):
            await self._pass_on(nodes, name)

    def _on_letter(self, nodes: Nodes, number: int, name: str, text: bytes) -> None:
        """A script asks its workspace something; the answer goes to the host that it runs on."""
        link = self._links_of(nodes)[number]
        lender = self._lenders.get(link.host.shown)
        if lender is None:
            lender = self._lenders[link.host.shown] = OnDemand(
                lambda: self._opened(link.host), lost_after(nodes.target)
            )
        bring = partial(lender.lend, nodes.run_id, name)
        self._asked(JobRequest(nodes.run_id, name, text, partial(link.answer, name), bring))

    async def _opened(self, host: SshHost) -> tuple[Session, HostFacts]:
        return await Session.open(host, self._root(host), variables=self._variables(host))

    async def _on_growth(self, nodes: Nodes, number: int) -> None:
        """A node wrote something: a sign of life of the whole run, also where only its own files can be seen."""
        limit = self._silence(nodes)
        now = time.monotonic()
        if limit is None or is_shared(nodes.target) or now < self._heard_at.get(nodes.run_id, 0.0) + limit / 8:
            return
        self._heard_at[nodes.run_id] = now
        await self._to_others(nodes, number, "journals/.heard", b"")

    def _silence(self, nodes: Nodes) -> float | None:
        """How long the run may be silent, if it may not be so for ever."""
        if len(nodes.numbers) == 1:
            return None
        if nodes.run_id not in self._limits:
            limit = (read_json(nodes.folder.node(0) / "plan.json") or {}).get("hang_seconds")
            self._limits[nodes.run_id] = None if limit is None else float(limit)
        return self._limits[nodes.run_id]

    async def _to_others(self, nodes: Nodes, number: int, path: str, data: bytes) -> None:
        for link in self._links_of(nodes):
            if link.number != number:
                await link.put(path, data)

    async def _pass_on(self, nodes: Nodes, name: str) -> None:
        """What mpirun wants started on another host goes there."""
        links = self._links_of(nodes)
        request = read_json(nodes.folder.path / name) or {}
        number = mpi.asked(name, request, [link.address for link in links])
        if number is not None:
            place = f"{within(nodes, number)}/{mpi.REQUEST}"
            await links[number].put(place, json.dumps(request).encode())

    def _root(self, host: SshHost) -> str:
        return root_of(host, self._folder)


async def together(works: Any) -> list[Any]:
    """The results of several works; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
