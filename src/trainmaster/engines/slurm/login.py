"""A cluster that is used from elsewhere: its login node is reached over SSH, and the nodes see a folder there.

One connection is kept, for commands and for what comes back from all runs; others are there while something is brought.
What comes back goes to the run's folder here, so that all else is as if the cluster were next door.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import EngineContext, JobRequest
from trainmaster.engines.plans import read_claim, write_plans
from trainmaster.engines.slurm import travel
from trainmaster.engines.slurm.command_channel import CommandChannel
from trainmaster.engines.slurm.commands import NoAnswer, Said
from trainmaster.engines.slurm.fetched import Fetched
from trainmaster.engines.slurm.job import Job
from trainmaster.engines.slurm.upload import Upload
from trainmaster.engines.ssh import starting
from trainmaster.engines.ssh.cleanup import Cleanup
from trainmaster.engines.ssh.data import freight_of
from trainmaster.engines.ssh.host import SshHost, check_ssh, root_of
from trainmaster.engines.ssh.on_demand import lend
from trainmaster.engines.ssh.patience import FIRST_PAUSE, LONGEST_PAUSE, patiently
from trainmaster.engines.ssh.ssh_errors import Unreachable
from trainmaster.job.agent.other_nodes import STOP
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.shared.job_spec import JobSpec, load_spec
from trainmaster.shared.json_files import read_json, write_json
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# Beside the folders of the nodes: at which login node it is, and where things lie there.
_NOTE = "login.json"


class Login:
    """One login node, for one workspace."""

    python = "python3"

    def __init__(self, host: SshHost, patience: float, surroundings: EngineContext) -> None:
        self.news: Callable[[], None] = lambda: None
        self._host = host
        self._patience = patience
        self._workspace = surroundings.folder
        self._asked = surroundings.asked
        self._root = root_of(host, surroundings.folder)
        self._left = Cleanup(surroundings.folder.path / "logins" / re.sub(r"[^\w.-]", "_", self._root))
        self._delivery = Upload(host, self._root, patience, self._left)
        self._desk: CommandChannel | None = None
        self._connecting: asyncio.Task[CommandChannel] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._tidier: asyncio.Task[None] | None = None
        self._followed: dict[str, _Followed] = {}
        self._doing: dict[str, str] = {}
        self._errands: set[asyncio.Task[None]] = set()

    # Commands

    async def carry_out(self, command: Sequence[str], given: str, seconds: float) -> Said:
        desk = await self._reached()
        try:
            return await desk.carry_out(command, given, seconds)
        except ComputeTargetException as error:
            if not desk.broken.done():
                raise
            # Whether it was carried out cannot be told.
            raise NoAnswer(error.headline) from error

    async def user(self) -> int:
        return (await self._reached()).facts.user

    async def _reached(self) -> CommandChannel:
        """The kept connection. Raises NoAnswer where there is none now."""
        try:
            return await self._connected()
        except ComputeTargetException as error:
            raise NoAnswer(error.headline) from error

    # Bringing

    async def bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        check_ssh()
        spec = load_spec(job.nodes.folder.spec.read_text())
        starting.check_no_container(spec)
        freight_of(job.nodes.folder)
        write_plans(job.nodes, plans)
        self._leave_earlier_attempts(job)

        def tell(error: Unreachable) -> None:
            self._doing[job.name] = f"waiting for {self._host.shown}: {error.headline}"

        try:
            await patiently(lambda: self._bring(job, spec, plans, kit), self._patience, tell)
        finally:
            self._doing.pop(job.name, None)

    async def _bring(self, job: Job, spec: JobSpec, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        nodes = job.nodes

        def tell(sentence: str) -> None:
            self._doing[job.name] = sentence

        async with self._delivery.turn(tell, starting.travelling_environment(nodes, spec)) as carrier:
            self._note(job, carrier.facts.root, kit)
            settled = await starting.bring(carrier, nodes, spec, self._workspace, kit)
            files = travel.files(nodes, spec, self._workspace, plans, carrier.facts, settled)
            folder = f"runs/{nodes.run_id}/{starting.within(nodes, 0)}"
            order = {"op": "lay", "run": nodes.run_id, "folder": folder, "attempt": nodes.folder.attempt}
            await carrier.session.call(order, json.dumps(files).encode())

    def _note(self, job: Job, root: str, kit: Path) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        data = {"version": 1, "host": self._host.shown, "root": root, "kit": f"kits/{kit.name}"}
        write_json(job.folder / _NOTE, data)

    def path(self, job: Job, path: Path) -> str:
        root = (read_json(job.folder / _NOTE) or {}).get("root", self._root)
        return f"{root}/{path.relative_to(self._workspace.path)}"

    def doing(self, job: Job) -> str:
        return self._doing.get(job.name, "")

    # Following

    def follow(self, job: Job) -> None:
        if job.name in self._followed:
            return
        self._followed[job.name] = _Followed(job)
        if self._desk is not None:
            self._send_out(self._begin_to_watch(self._desk, self._followed[job.name]))
        if self._keeper is None or self._keeper.done():
            self._keeper = start_task(f"connection to {self._host.shown}", self._keep)

    async def _keep(self) -> None:
        """Connects, again and again, as long as there are jobs to follow."""
        backoff, logged = Backoff(FIRST_PAUSE, LONGEST_PAUSE), ""
        while self._followed:
            began = time.monotonic()
            try:
                error = await (await self._connected()).broken
            except ComputeTargetException as refusal:
                error = refusal
            if error.message != logged:
                logged = error.message
                log.info("%s", logged.replace("\n", " | "))
            if time.monotonic() - began > LONGEST_PAUSE:
                backoff.reset()
            await backoff.sleep()

    async def _connected(self) -> CommandChannel:
        if self._desk is not None and not self._desk.broken.done():
            return self._desk
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> CommandChannel:
        if self._desk is not None:
            await self._desk.close()
            self._desk = None
        self._desk = await CommandChannel.open(self._host, self._root, self._patience, self._take)
        for followed in list(self._followed.values()):
            await self._begin_to_watch(self._desk, followed)
        self.news()
        return self._desk

    async def _begin_to_watch(self, desk: CommandChannel, followed: _Followed) -> None:
        """What may not have arrived over the connection before this one is said again."""
        with contextlib.suppress(ComputeTargetException):
            if not followed.job.settled:
                await desk.ask(await followed.order())
            for header, payload in followed.said:
                await desk.ask(header, payload)

    def _take(self, name: str, header: dict[str, Any], payload: bytes) -> None:
        followed = self._followed.get(name)
        if followed is None:
            return
        if "letter" in header:
            self._asked(self._letter(followed.job.nodes.run_id, header["letter"], payload))
        elif followed.fetched.take(header, payload):
            self.news()

    def _letter(self, run_id: str, name: str, text: bytes) -> JobRequest:
        async def answer(data: bytes) -> None:
            await self._tell({"op": "answer", "run": run_id, "name": name}, data)

        async def lent(paths: Sequence[str]) -> list[str]:
            async with self._delivery.turn(lambda sentence: None) as carrier:
                return await lend(carrier.session, carrier.facts, run_id, name, paths)

        async def bring(paths: Sequence[str]) -> list[str]:
            return await patiently(lambda: lent(paths), self._patience)

        return JobRequest(run_id, name, text, answer, bring)

    async def look(self, job: Job) -> None:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while job.name in self._followed:
            try:
                await (await self._connected()).ask({"op": "look", "of": job.name})
                return
            except ComputeTargetException:
                await backoff.sleep()

    async def stop(self, job: Job) -> None:
        claims = [read_claim(job.nodes.folder.node(number)) for number in range(job.nodes.count)]
        if any(claim and claim.get("cancelled") for claim in claims):
            kit = (read_json(job.folder / _NOTE) or {}).get("kit", "")
            await self._say(job, {"op": "claim", "run": job.nodes.run_id, "kit": kit})

    async def give_up(self, job: Job) -> None:
        job.give_up()
        path = f"runs/{job.nodes.run_id}/{(job.folder / STOP).relative_to(job.nodes.folder.path)}"
        await self._say(job, {"op": "put", "path": path}, (job.folder / STOP).read_bytes())

    async def _say(self, job: Job, header: dict[str, Any], payload: bytes = b"") -> None:
        """Once it can be heard; each counts once, however often it is said."""
        followed = self._followed.get(job.name)
        if followed is not None and (header, payload) not in followed.said:
            followed.said.append((header, payload))
            await self._tell(header, payload)

    def _send_out(self, errand: Coroutine[Any, Any, None]) -> None:
        """Has something done that nobody waits for."""
        task = asyncio.get_running_loop().create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _tell(self, header: dict[str, Any], payload: bytes = b"") -> None:
        if self._desk is not None:
            with contextlib.suppress(ComputeTargetException):
                await self._desk.ask(header, payload)

    # After it

    def _leave_earlier_attempts(self, job: Job) -> None:
        for name, followed in list(self._followed.items()):
            if followed.job.nodes.run_id == job.nodes.run_id and name != job.name:
                self._leave(name)

    def _leave(self, name: str) -> None:
        followed = self._followed.pop(name, None)
        if followed is not None:
            followed.fetched.finish()
            self._send_out(self._tell({"op": "leave", "of": name}))

    async def forget(self, job: Job) -> dict[str, str]:
        self._leave_earlier_attempts(job)
        self._leave(job.name)
        if not (job.folder / _NOTE).exists():
            return {}
        # No process of it was ever at the login node: there are only files.
        self._left.note(self._host.shown, job.nodes.run_id, "")
        if self._tidier is None or self._tidier.done():
            self._tidier = start_task(f"tidying {self._host.shown}", self._tidy)
        return {"slurm.login": self._host.shown}

    async def _tidy(self) -> None:
        """What cannot be removed now is removed when something is brought again."""
        with contextlib.suppress(TrainmasterError):
            while self._left.runs(self._host.shown):
                await self._delivery.tidy()

    async def close(self) -> None:
        tasks = [task for task in (self._keeper, self._connecting, self._tidier, *self._errands) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._delivery.close()
        if self._desk is not None:
            await self._desk.close()


class _Followed:
    """A job whose files are fetched."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.fetched = Fetched(job.nodes.folder)
        self.said: list[tuple[dict[str, Any], bytes]] = []
        """What was said of it, and would have to be said again."""

    async def order(self) -> dict[str, Any]:
        """What the other side has to know to tell what is not here yet."""
        nodes = self.job.nodes
        self.fetched.lay_down()
        return {
            "op": "watch",
            "of": self.job.name,
            "run": nodes.run_id,
            "folder": f"runs/{nodes.run_id}/{self.job.folder.relative_to(nodes.folder.path)}",
            "count": nodes.count,
            "common": True,
            "back": freight_of(nodes.folder).back,
            "sizes": await asyncio.to_thread(self.fetched.sizes),
            "states": self.fetched.states(),
        }
