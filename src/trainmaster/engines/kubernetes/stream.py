"""An attempt of a run whose files go over the API server: the pods are hosts (`engines/remote/`).

Pods stay while they are alive, also for further attempts of the run: these go on in the same working folder. If a pod
was lost, all are created anew, and the working folder begins with what had come back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.engines.engine import EngineContext, FewerNodesError, Nodes
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.gang_control import Gang, elasticity_of
from trainmaster.engines.kubernetes.notes import GangNote, read_note, write_note
from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.pod_host import CACHE, FOLDER, PodHost, first_process
from trainmaster.engines.kubernetes.pod_watch import Pod
from trainmaster.engines.kubernetes.pods import PodVolume, labels_of, make_pod, names_of, work_volume
from trainmaster.engines.plans import write_plans
from trainmaster.engines.remote.channel import Host, Unreachable
from trainmaster.engines.remote.cleanup import Cleanup
from trainmaster.engines.remote.environments import RemoteEnvironment
from trainmaster.engines.remote.hosted_attempt import HostedAttempt, HostPool, gather_or_cancel
from trainmaster.engines.remote.node import HostUse, RemoteNode
from trainmaster.engines.remote.retrying import host_backoff
from trainmaster.engines.remote.upload import resumes, upload_earlier_attempts, upload_run
from trainmaster.engines.remote.upload_pool import UploadPool
from trainmaster.job.errors import ComputeTargetException, TrainmasterError
from trainmaster.job.pod.first_process import FETCHED
from trainmaster.shared.job_spec import load_spec

_NODE_NOTE = "pod.json"
# A pod that runs according to the cluster and cannot be reached for so long is lost.
_SILENCE = 120.0
# Answers of the API server after which another attempt to reach a pod may succeed.
_PASSING = frozenset({404, 408, 409, 429})


class StreamedAttempt:
    """One attempt of a run in pods that are sent their files."""

    def __init__(self, context: EngineContext, cluster: Cluster, nodes: Nodes) -> None:
        self._context = context
        self._cluster = cluster
        self._nodes = nodes
        self._spec = load_spec(nodes.folder.spec.read_text())
        self._options = PodOptions.read(nodes.target, self._spec)
        self._pools: dict[Host, UploadPool] = {}
        self._starting: asyncio.Future[None] | None = None
        self._is_cancelled = False
        note = read_note(nodes.folder)
        self._use_gang(nodes.folder.attempt if note is None else note.gang)

    def _use_gang(self, number: int) -> None:
        """Uses the pods that were, or will be, created for attempt `number`."""
        nodes, settings = self._nodes, self._options.settings
        names = names_of(nodes.run_id, number, len(nodes.numbers), self._cluster.workspace)
        self.gang = Gang(
            self._cluster,
            names,
            self._make_pod,
            settings.gang_seconds,
            has_begun=self._has_ended,
            elasticity=elasticity_of(self._spec),
        )
        self._cache = f"{CACHE}/{self._cluster.workspace}" if settings.cache.kind != "none" else ""
        hosts = [PodHost(self._cluster.api, pod, settings.python, self._cache) for pod in names.pods]
        pool = HostPool(self._uploads)
        self.hosted = HostedAttempt(self._context, nodes, [(host, self._use(host.pod)) for host in hosts], pool)

    def _use(self, pod: str) -> HostUse:
        silence = float(self._nodes.target.options.get("lost_after_seconds") or _SILENCE)

        def is_lost(silent: float) -> bool:
            known = self._cluster.pods.answering_for
            if not known:
                # While the API server is away, nobody knows.
                return False
            return self.gang.is_over(pod) or min(silent, known) > silence

        return HostUse(FOLDER, silence, _NODE_NOTE, is_lost)

    def _make_pod(self, number: int, owner: Mapping[str, Any]) -> Mapping[str, Any]:
        options, names = self._options, self.gang.names
        seconds = options.settings.abandoned_after_seconds
        volumes = [PodVolume("trainmaster-work", {"emptyDir": {}}, FOLDER)]
        if self._cache:
            volumes.append(work_volume(options, CACHE))
        return make_pod(
            names,
            number,
            options,
            [options.settings.python, "-c", first_process(), FOLDER, str(seconds)],
            labels_of(self._cluster.workspace, names),
            owner,
            volumes=volumes,
        )

    # Starting

    async def start(self, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        """Creates the pods, uploads everything, and starts the agents. `stop` gives it up."""
        self._starting = asyncio.ensure_future(self._start(plans, kit))
        try:
            await self._starting
        except asyncio.CancelledError:
            await self.hosted.close()
            if not self._is_cancelled:
                # The dispatcher ends; the next one goes on with the same pods.
                raise
            await self._take_back()
        except FewerNodesError:
            await self.hosted.close()
            raise
        except Exception:
            await self._take_back()
            raise
        finally:
            self._starting = None

    async def _start(self, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        write_plans(self._nodes, plans)
        await self._choose_gang()
        backoff = host_backoff()
        while True:
            pods = await self.gang.assemble()
            if self._has_ended():
                # Its end is found by those who follow it. New pods would run the script again as the same attempt.
                return
            try:
                await self._start_agents(pods, plans, kit)
                return
            except ComputeTargetException as error:
                await self.hosted.close()
                if not self._may_pass(error):
                    raise
                self.gang.words = f"trying again: {error.headline}"
            await backoff.sleep()

    def _has_ended(self) -> bool:
        """Whether agents may have been started, such as by an earlier dispatcher, and a pod has ended since."""
        is_noted = all(remote.kit for remote in self.hosted.remotes)
        return is_noted and any(map(self.gang.is_over, self.gang.names.pods))

    async def _choose_gang(self) -> None:
        """Uses the pods of the attempt before if all of them are alive; otherwise new ones."""
        nodes = self._nodes
        note = read_note(nodes.folder)
        if note is not None:
            if note.count != len(nodes.numbers):
                # An elastic run that starts with fewer.
                write_note(nodes.folder, GangNote(note.gang, len(nodes.numbers)))
            return
        await self._cluster.pods.wait_until_known()
        before = read_note(replace(nodes.folder, attempt=nodes.folder.attempt - 1))
        if before is not None:
            earlier = names_of(nodes.run_id, before.gang, before.count, self._cluster.workspace)
            self._use_gang(before.gang)
            if earlier.pods != self.gang.names.pods or before.is_released or not self.gang.is_running:
                with contextlib.suppress(ComputeTargetException):
                    await self._cluster.delete_gang(earlier)
                self._use_gang(nodes.folder.attempt)
        write_note(nodes.folder, GangNote(self.gang.names.attempt, len(nodes.numbers)))

    async def _start_agents(self, pods: Sequence[Pod], plans: Sequence[dict[str, Any]], kit: Path) -> None:
        await self.hosted.connect()
        environments = await self._upload(pods, plans, kit)
        addresses = [str(pod["status"]["podIP"]) for pod in pods]
        python = self._options.settings.python
        await self.hosted.start_agents(self._spec, plans, kit, python, environments, addresses)

    def _may_pass(self, error: ComputeTargetException) -> bool:
        """Whether a start that failed may succeed later, perhaps in other pods."""
        if isinstance(error, ApiError):
            return error.status >= 500 or error.status in _PASSING
        return isinstance(error, Unreachable) or not self.gang.is_running

    async def _upload(self, pods: Sequence[Pod], plans: Sequence[dict[str, Any]], kit: Path) -> list[RemoteEnvironment]:
        """Uploads to all pods. Of those that share a cache, one comes first: the others find it filled."""
        found: dict[int, RemoteEnvironment] = {}

        async def upload(number: int) -> None:
            async with self._cluster.upload_turns:
                found[number] = await self._upload_to(self.hosted.remotes[number], plans, kit)

        first = list(
            {self._cache_of(pod) or number: number for number, pod in reversed(list(enumerate(pods)))}.values()
        )
        await gather_or_cancel(upload(number) for number in first)
        await gather_or_cancel(upload(number) for number in range(len(pods)) if number not in first)
        return [found[number] for number in range(len(pods))]

    def _cache_of(self, pod: Pod) -> str:
        """Names the cache of a pod; empty if it has none."""
        cache = self._options.settings.cache
        machine = str(pod["spec"].get("nodeName")) if cache.kind == "node" else ""
        return "" if cache.kind == "none" else f"{cache.kind}:{cache.name}:{machine}"

    async def _upload_to(self, remote: RemoteNode, plans: Sequence[dict[str, Any]], kit: Path) -> RemoteEnvironment:
        pod = self._cluster.pods.get(remote.host.label)
        if pod is not None and self._cache_of(pod):
            remote.connection.transfers = self._cluster.transfers(self._cache_of(pod))
        workspace, nodes = self._context.folder, self._nodes
        if plans[0]["layout"] is None and not resumes(nodes):
            await upload_earlier_attempts(remote.connection, nodes, self._spec, workspace)
        environment = await upload_run(remote.connection, nodes, self._spec, workspace, kit, remote.report)
        # The image may have neither a home nor a folder for temporary files that its user can write to.
        given = remote.connection.facts.variables
        folders = {name: given[name] for name in ("HOME", "TMPDIR") if given.get(name, "").startswith(f"{FOLDER}/")}
        return replace(environment, variables={**environment.variables, **folders})

    async def _take_back(self) -> None:
        """Forgets a run that was not started in all pods; they are released next."""
        await self.hosted.close()
        for remote in self.hosted.remotes:
            remote.forget()

    # Following and ending

    async def follow(self, number: int) -> None:
        self._cluster.pods.start()
        await self.hosted.follow(number)

    async def stop(self) -> None:
        if self._starting is not None:
            self._is_cancelled = True
            self._starting.cancel()
            return
        await self.hosted.stop()

    async def kill(self) -> None:
        """Kills the agents; pods that cannot be reached are deleted."""
        await self.hosted.kill()
        silent = [each.host.label for each in self.hosted.remotes if each.kit and not each.is_connected]
        with contextlib.suppress(ComputeTargetException):
            await self._cluster.delete_pods(silent)

    async def sweep(self) -> None:
        """What agents have left ends with their pods, unless the next attempt uses these pods."""
        if self.gang.is_running:
            await self.hosted.sweep(remove=False)

    @property
    def waits_for(self) -> str:
        trouble = self._cluster.pods.trouble
        if trouble:
            return f"waiting for Kubernetes: {trouble}"
        return self.gang.words or self.hosted.activity

    @property
    def lost(self) -> frozenset[str]:
        """The names of lost pods."""
        return frozenset(remote.host.label for remote in self.hosted.remotes if remote.lost is not None)

    def was_started(self, number: int) -> bool:
        return bool(self.hosted.remotes[number].kit)

    def problem_of(self, number: int) -> str:
        error = self.hosted.remotes[number].lost
        return "" if error is None else error.message

    async def release(self) -> None:
        """Deletes the pods, whose files have been fetched. Raises ComputeTargetException."""
        write_note(self._nodes.folder, GangNote(self.gang.names.attempt, len(self._nodes.numbers), is_released=True))
        await asyncio.gather(*(self._say_fetched(remote) for remote in self.hosted.remotes))
        await self.close()
        await self.gang.release(self.lost)
        self.gang.forget()

    async def _say_fetched(self, remote: RemoteNode) -> None:
        """Lets the first process of a pod end at once."""
        if remote.is_connected:
            with contextlib.suppress(TrainmasterError, TimeoutError):
                async with asyncio.timeout(5):
                    await remote.connection.send({"op": "file", "path": FETCHED}, b".")
                    await remote.connection.call({"op": "flush"})

    async def close(self) -> None:
        await self.hosted.close()
        for pool in self._pools.values():
            await pool.close()

    def _uploads(self, host: Host) -> UploadPool:
        if host not in self._pools:
            cleanup = Cleanup(self._context.folder.path / "hosts")
            self._pools[host] = UploadPool(host, FOLDER, _SILENCE, cleanup)
        return self._pools[host]
