"""A cluster that is used through its login node, which is reached over SSH and shares a folder with the nodes.

One connection stays open for commands and for the files of all runs. Uploads have connections of their own. Files that
come back go to the run's folder here, so that the rest of the engine works as on the cluster itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import EngineContext, JobRequest
from trainmaster.engines.plans import read_claim, write_plans
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.engines.remote.cleanup import Cleanup
from trainmaster.engines.remote.data import check_run_data
from trainmaster.engines.remote.host import SshHost, check_ssh, login_of, root_of, silence_limit
from trainmaster.engines.remote.messages import Messages
from trainmaster.engines.remote.mirror import SharedMirror
from trainmaster.engines.remote.on_demand import upload_on_demand
from trainmaster.engines.remote.plans import node_path
from trainmaster.engines.remote.retrying import host_backoff, retry_unreachable
from trainmaster.engines.remote.upload import check_no_container, environment_to_upload, upload_run
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.engines.slurm.command_channel import CommandChannel
from trainmaster.engines.slurm.commands import CommandResult, NoAnswer
from trainmaster.engines.slurm.job import Job
from trainmaster.engines.slurm.job_files import job_files
from trainmaster.job.agent.other_nodes import STOP
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.shared.job_spec import JobSpec, load_spec
from trainmaster.shared.json_files import read_json, write_json
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

# Beside the folders of the nodes: the login node of the job, and the paths there.
_NOTE = "login.json"


class LoginNodes:
    """The login nodes of all targets of one workspace."""

    shares_files = False

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._sites: dict[SshHost, LoginNode] = {}

    def find(self, target: TargetRecord) -> LoginNode:
        host = login_of(target)
        if host not in self._sites:
            self._sites[host] = LoginNode(host, silence_limit(target), self._context)
        return self._sites[host]


class LoginNode:
    """One login node, for one workspace."""

    python = "python3"

    def __init__(self, host: SshHost, silence: float, context: EngineContext) -> None:
        self.on_news: Callable[[], None] = lambda: None
        self._host = host
        self._silence = silence
        self._context = context
        self._root = root_of(host, context.folder)
        self._cleanup = Cleanup(context.folder.path / "logins" / re.sub(r"[^\w.-]", "_", self._root))
        self._uploads = UploadPool(host, self._root, silence, self._cleanup)
        self._channel: CommandChannel | None = None
        self._connecting: asyncio.Task[CommandChannel] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._cleaner: asyncio.Task[None] | None = None
        self._watched: dict[str, _WatchedJob] = {}
        self._activities: dict[str, str] = {}
        self._background: set[asyncio.Task[None]] = set()

    # Commands

    async def run_command(self, command: Sequence[str], stdin: str, seconds: float) -> CommandResult:
        channel = await self._reach()
        try:
            return await channel.run_command(command, stdin, seconds)
        except ComputeTargetException as error:
            if not channel.lost.done():
                raise
            # Whether the command ran is unknown.
            raise NoAnswer(error.headline) from error

    async def user(self) -> int:
        return (await self._reach()).user

    async def _reach(self) -> CommandChannel:
        """The open connection. Raises NoAnswer if there is none now."""
        try:
            return await self._connect()
        except ComputeTargetException as error:
            raise NoAnswer(error.headline) from error

    # Uploading

    async def bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        check_ssh()
        spec = load_spec(job.nodes.folder.spec.read_text())
        check_no_container(spec)
        check_run_data(job.nodes.folder)
        write_plans(job.nodes, plans)
        self._unwatch_earlier_attempts(job)
        report = partial(self._activities.__setitem__, job.name)

        def on_retry(error: Unreachable) -> None:
            report(f"waiting for {self._host.label}: {error.headline}")

        try:
            await retry_unreachable(lambda: self._upload(job, spec, plans, kit, report), self._silence, on_retry)
        finally:
            self._activities.pop(job.name, None)

    async def _upload(
        self, job: Job, spec: JobSpec, plans: Sequence[dict[str, Any]], kit: Path, report: Callable[[str], None]
    ) -> None:
        nodes, workspace = job.nodes, self._context.folder
        async with self._uploads.turn(report, environment_to_upload(nodes, spec)) as connection:
            self._note(job, connection.facts.root, kit)
            environment = await upload_run(connection, nodes, spec, workspace, kit, report)
            files = job_files(nodes, spec, workspace, plans, connection.facts, environment)
            folder = f"runs/{nodes.run_id}/{node_path(nodes, 0)}"
            header = {"op": "lay", "run": nodes.run_id, "folder": folder, "attempt": nodes.folder.attempt}
            await connection.call(header, json.dumps(files).encode())

    def _note(self, job: Job, root: str, kit: Path) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        data = {"version": 1, "host": self._host.label, "root": root, "kit": f"kits/{kit.name}"}
        write_json(job.folder / _NOTE, data)

    def path(self, job: Job, path: Path) -> str:
        root = (read_json(job.folder / _NOTE) or {}).get("root", self._root)
        return f"{root}/{path.relative_to(self._context.folder.path)}"

    def activity(self, job: Job) -> str:
        return self._activities.get(job.name, "")

    # Following

    def follow(self, job: Job) -> None:
        if job.name in self._watched:
            return
        self._watched[job.name] = _WatchedJob(job)
        if self._channel is not None:
            self._run_in_background(self._watch(self._channel, self._watched[job.name]))
        if self._keeper is None or self._keeper.done():
            self._keeper = start_task(f"connection to {self._host.label}", self._stay_connected)

    async def _stay_connected(self) -> None:
        """Connects again and again while there are jobs to follow."""
        loop = asyncio.get_running_loop()
        backoff, logged = host_backoff(), ""
        while self._watched:
            began = loop.time()
            try:
                error = await (await self._connect()).lost
            except ComputeTargetException as refusal:
                error = refusal
            if error.message != logged:
                logged = error.message
                log.info("%s", logged.replace("\n", " | "))
            if loop.time() - began > backoff.longest:
                backoff.reset()
            await backoff.sleep()

    async def _connect(self) -> CommandChannel:
        if self._channel is not None and not self._channel.lost.done():
            return self._channel
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.get_running_loop().create_task(self._open_channel())
        return await asyncio.shield(self._connecting)

    async def _open_channel(self) -> CommandChannel:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None
        self._channel = await CommandChannel.open(self._host, self._root, self._silence, self._on_report)
        for watched in list(self._watched.values()):
            await self._watch(self._channel, watched)
        self.on_news()
        return self._channel

    async def _watch(self, channel: CommandChannel, watched: _WatchedJob) -> None:
        """Has a job watched over this connection, and repeats its messages: the last connection may have lost them."""
        with contextlib.suppress(ComputeTargetException):
            if not watched.job.settled:
                await channel.call(await watched.order())
            for header, payload in watched.messages:
                await channel.call(header, payload)

    def _on_report(self, name: str, header: dict[str, Any], payload: bytes) -> None:
        watched = self._watched.get(name)
        if watched is None:
            return
        if "letter" in header:
            self._context.on_request(self._job_request(watched.job.nodes.run_id, header["letter"], payload))
        elif watched.mirror.take(header, payload):
            self.on_news()

    def _job_request(self, run_id: str, name: str, text: bytes) -> JobRequest:
        async def answer(data: bytes) -> None:
            await self._send({"op": "answer", "run": run_id, "name": name}, data)

        bring = partial(upload_on_demand, self._uploads, run_id, name, self._silence)
        return JobRequest(run_id, name, text, answer, bring)

    async def refresh(self, job: Job) -> None:
        backoff = host_backoff()
        while job.name in self._watched:
            try:
                await (await self._connect()).call({"op": "look", "of": job.name})
                return
            except ComputeTargetException:
                await backoff.sleep()

    async def stop(self, job: Job) -> None:
        claims = [read_claim(job.nodes.folder.node(number)) for number in range(job.nodes.count)]
        if any(claim and claim.get("cancelled") for claim in claims):
            kit = (read_json(job.folder / _NOTE) or {}).get("kit", "")
            await self._send_reliably(job, {"op": "claim", "run": job.nodes.run_id, "kit": kit})

    async def give_up(self, job: Job) -> None:
        job.give_up()
        path = f"runs/{job.nodes.run_id}/{(job.folder / STOP).relative_to(job.nodes.folder.path)}"
        await self._send_reliably(job, {"op": "put", "path": path}, (job.folder / STOP).read_bytes())

    async def _send_reliably(self, job: Job, header: dict[str, Any], payload: bytes = b"") -> None:
        watched = self._watched.get(job.name)
        if watched is not None and watched.messages.add(header, payload):
            await self._send(header, payload)

    async def _send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        if self._channel is not None:
            with contextlib.suppress(ComputeTargetException):
                await self._channel.call(header, payload)

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # After the end

    def _unwatch_earlier_attempts(self, job: Job) -> None:
        for name, watched in list(self._watched.items()):
            if watched.job.nodes.run_id == job.nodes.run_id and name != job.name:
                self._unwatch(name)

    def _unwatch(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        if watched is not None:
            watched.mirror.finish()
            self._run_in_background(self._send({"op": "leave", "of": name}))

    async def forget(self, job: Job) -> dict[str, str]:
        self._unwatch_earlier_attempts(job)
        self._unwatch(job.name)
        if not (job.folder / _NOTE).exists():
            return {}
        # No kit: the run has no processes on the login node, only files.
        self._cleanup.note(self._host.label, job.nodes.run_id, "")
        if self._cleaner is None or self._cleaner.done():
            self._cleaner = start_task(f"cleanup of {self._host.label}", self._clean_up)
        return {"slurm.login": self._host.label}

    async def _clean_up(self) -> None:
        """What cannot be removed now is removed before the next upload."""
        with contextlib.suppress(TrainmasterError):
            while self._cleanup.runs(self._host.label):
                await self._uploads.remove_remains()

    async def close(self) -> None:
        tasks = [
            task for task in (self._keeper, self._connecting, self._cleaner, *self._background) if task is not None
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._uploads.close()
        if self._channel is not None:
            await self._channel.close()


class _WatchedJob:
    """A job whose files are mirrored here."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.mirror = SharedMirror(job.nodes.folder)
        self.messages = Messages()

    async def order(self) -> dict[str, Any]:
        """The request to watch the job."""
        nodes = self.job.nodes
        self.mirror.make_folders()
        return {
            "op": "watch",
            "of": self.job.name,
            "run": nodes.run_id,
            "folder": f"runs/{nodes.run_id}/{self.job.folder.relative_to(nodes.folder.path)}",
            "count": nodes.count,
            "common": True,
            **await asyncio.to_thread(self.mirror.summary),
        }
