"""An attempt of a run in pods that see the workspace's folder: the agent is the pod's program, and nothing is sent.

The pods meet in the folder (`job/pod/shared_folder.py`) and need no dispatcher. The engine looks at the files, and at
the watch of pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmaster.engines import job_requests
from trainmaster.engines.engine import EngineContext, FewerNodesError, Nodes
from trainmaster.engines.kubernetes.cleaning import release_earlier
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.gang import PodState, state_of
from trainmaster.engines.kubernetes.gang_control import Gang, elasticity_of
from trainmaster.engines.kubernetes.local_host import bring_environment
from trainmaster.engines.kubernetes.notes import GangNote, read_note, write_note
from trainmaster.engines.kubernetes.options import PodOptions
from trainmaster.engines.kubernetes.pods import PodVolume, labels_of, make_pod, names_of
from trainmaster.engines.plans import write_plans
from trainmaster.engines.remote import mpi
from trainmaster.engines.remote.plans import replace_paths
from trainmaster.engines.remote.starting import has_helpers
from trainmaster.engines.remote.upload import environment_folder, environment_to_upload
from trainmaster.environments.prefix import PYTHON_THERE
from trainmaster.job.agent import durable
from trainmaster.job.agent.other_nodes import STOP
from trainmaster.job.agent.slurm import GANG
from trainmaster.job.errors import ComputeTargetException
from trainmaster.job.pod.shared_folder import ADDRESSES, ORDER, OWN
from trainmaster.shared.job_spec import load_spec
from trainmaster.shared.json_files import read_json, write_json
from trainmaster.shared.kubernetes_settings import Storage
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

_FILES_SECONDS = (0.05, 1.0)
# For what an agent wrote on its machine to appear here after its pod has ended.
_SETTLE_SECONDS = 3.0
# How much longer than its grace time a pod may take to leave: then its machine is lost.
_LEAVE_SECONDS = 30.0


class StorageAttempt:
    """One attempt of a run in pods that see its folder."""

    def __init__(self, context: EngineContext, cluster: Cluster, nodes: Nodes, storage: Storage) -> None:
        self._context = context
        self._cluster = cluster
        self._nodes = nodes
        self._storage = storage
        self._spec = load_spec(nodes.folder.spec.read_text())
        self._options = _as_this_user(PodOptions.read(nodes.target, self._spec))
        self._folder = nodes.folder.node(0).parent
        self._kit = ""
        self._events: set[str] = set()
        self._lost: dict[int, str] = {}
        self._leaving_since: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._looker: asyncio.Task[None] | None = None
        self._starting: asyncio.Future[None] | None = None
        self._is_cancelled = False
        self._activity = ""
        names = names_of(nodes.run_id, nodes.folder.attempt, len(nodes.numbers), cluster.workspace)
        settings = self._options.settings
        self.gang = Gang(
            cluster,
            names,
            self._make_pod,
            settings.gang_seconds,
            self._forget_addresses,
            self._have_met,
            elasticity_of(self._spec),
        )

    def _make_pod(self, number: int, owner: Mapping[str, Any]) -> Mapping[str, Any]:
        names = self.gang.names
        program = f"{self._kit}/trainmaster/job/pod/shared_folder.py"
        words = [self._options.settings.python, "-I", "-S", program, str(self._folder), str(number)]
        labels = labels_of(self._cluster.workspace, names)
        # For what images do not have, such as a folder for temporary files.
        own = PodVolume("trainmaster-own", {"emptyDir": {}}, OWN)
        return make_pod(names, number, self._options, [*words, str(len(names.pods))], labels, owner, volumes=[own])

    # Starting

    async def start(self, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        """Writes the plans, creates the pods, and returns when they run. `stop` gives it up."""
        self._starting = asyncio.ensure_future(self._start(plans, kit))
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self._is_cancelled:
                # The dispatcher ends; the next one goes on with the same pods.
                raise
            self._give_up()
            # If it fails, it is repeated at the end of the run.
            with contextlib.suppress(ComputeTargetException):
                await self.release()
        except FewerNodesError:
            raise
        except Exception:
            self._give_up()
            raise
        finally:
            self._starting = None

    async def _start(self, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        self._check_is_shared()
        self._kit = str(kit)
        job_requests.make_folder(self._nodes)
        note = read_note(self._nodes.folder)
        if note is None or note.count != len(self._nodes.numbers):
            await self._write_plans(plans)
            write_note(self._nodes.folder, GangNote(self.gang.names.attempt, len(self._nodes.numbers)))
        # Otherwise the plans may be in use: pods put their own variables into them.
        with contextlib.suppress(ComputeTargetException):
            await release_earlier(self._cluster, self._nodes, self.gang.names.attempt)
        await self.gang.assemble()
        self._look_at_files()

    async def _write_plans(self, plans: Sequence[dict[str, Any]]) -> None:
        nodes, python = self._nodes, self._options.settings.python
        paths: dict[str, str] = {}
        more: Mapping[str, str] = {}
        built = environment_to_upload(nodes, self._spec)
        if built:
            self._activity = "copying the environment to the shared folder"
            place = f"{self._storage.path}/.trainmaster/{self._cluster.workspace}"
            environment = await bring_environment(Path(built), place)
            paths, more = {environment_folder(nodes): f"{place}/{environment.folder}"}, environment.variables
            self._activity = ""
        own = [self._plan_of_node(plans, number, python) for number in range(len(nodes.numbers))]
        write_plans(nodes, [replace_paths(plan, paths) if paths else plan for plan in own])
        order = {"python_token": PYTHON_THERE, "inherited": dict(self._spec.inherited_variables), "more": dict(more)}
        for number in range(len(own)):
            durable.write_unflushed(
                nodes.folder.node(number) / ORDER, json.dumps({"version": 1, **order}).encode(), mode=0o600
            )

    def _plan_of_node(self, plans: Sequence[dict[str, Any]], number: int, python: str) -> dict[str, Any]:
        if not has_helpers(self._nodes):
            return plans[number]
        folder = str(self._nodes.folder.node(number))
        if number == 0:
            return mpi.launcher_plan(plans[0], folder, self._kit, python)
        return mpi.helper_plan(plans[0], number, folder, self._kit, python)

    def _check_is_shared(self) -> None:
        """Raises an error if the pods would not see the workspace."""
        workspace, shared = self._context.folder.path.resolve(), Path(self._storage.path)
        if not workspace.is_relative_to(shared.resolve()):
            raise ComputeTargetException(
                f"the workspace {workspace} is not in {shared}, the storage of target '{self._nodes.target.name}'",
                cause="The pods must see the workspace's files under the same path.",
                hint=f"Create the workspace there: Workspace.create(name, path='{shared}/workspace').",
            )

    def _forget_addresses(self) -> None:
        """Called before all pods are created: those of pods that were given back are no longer true."""
        shutil.rmtree(self._folder / ADDRESSES, ignore_errors=True)
        (self._folder / GANG).unlink(missing_ok=True)

    def _have_met(self) -> bool:
        """Whether the pods have begun with the run. They do not wait for us: a short script may have ended by now."""
        # Listed, because a network file system may remember that a file does not exist.
        return GANG in os.listdir(self._folder)

    # Following

    async def follow(self, number: int) -> None:
        """Returns when the agent of a node has left a result, or its pod is gone."""
        note = read_note(self._nodes.folder)
        if note is None or note.is_released:
            # No pod was created, or the run was cancelled before all of them ran.
            return
        self._cluster.pods.start()
        self._look_at_files()
        try:
            while not self._has_result(number) and not await self._is_lost(number):
                await self._wait_for_change()
            if has_helpers(self._nodes):
                # The other nodes only serve the first one.
                self._give_up()
        finally:
            self._changed.set()

    def _has_result(self, number: int) -> bool:
        return (self._nodes.folder.node(number) / "result.json").exists()

    async def _is_lost(self, number: int) -> bool:
        """Whether a pod has ended without a result. Under MPI, that of another node counts too."""
        for each in range(len(self.gang.names.pods)) if has_helpers(self._nodes) else [number]:
            if self._is_pod_over(each):
                await self._settle(each)
                if not self._has_result(each):
                    self._lost[each] = "its pod has ended"
                    return True
        return False

    def _is_pod_over(self, number: int) -> bool:
        if not self._cluster.pods.answering_for:
            # While the API server is away, nobody knows.
            return False
        name = self.gang.names.pods[number]
        if self.gang.is_over(name):
            return True
        if state_of(self._cluster.pods.get(name)) is not PodState.LEAVING:
            return False
        since = self._leaving_since.setdefault(name, time.monotonic())
        return time.monotonic() - since > self._options.settings.grace_seconds + _LEAVE_SECONDS

    async def _settle(self, number: int) -> None:
        deadline = time.monotonic() + _SETTLE_SECONDS
        folder = self._nodes.folder.node(number)
        while not self._has_result(number) and time.monotonic() < deadline:
            # A network file system may remember that a file does not exist, unless its folder is listed.
            with contextlib.suppress(OSError):
                os.listdir(folder)
            await asyncio.sleep(0.1)

    async def _wait_for_change(self) -> None:
        pods = asyncio.ensure_future(self.gang.wait_for_change(_LEAVE_SECONDS))
        files = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({pods, files}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (pods, files):
                task.cancel()
            await asyncio.gather(pods, files, return_exceptions=True)

    def _look_at_files(self) -> None:
        if self._looker is None or self._looker.done():
            self._looker = start_task(f"files of {self._nodes.run_id}", self._look)

    async def _look(self) -> None:
        backoff = Backoff(*_FILES_SECONDS, factor=1.5)
        while not all(self._has_result(number) for number in range(self._nodes.count)):
            if self._report_news():
                backoff.reset()
            await backoff.sleep()
        self._report_news()

    def _report_news(self) -> bool:
        """Reports what is new in the files of the run; returns whether there was anything."""
        news = self._find_events()
        for event in news:
            self._context.on_event(self._nodes.run_id, event)
        requests = list(job_requests.waiting(self._nodes))
        for request in requests:
            self._context.on_request(request)
        if has_helpers(self._nodes):
            self._forward_mpi_requests()
        if news or any(self._has_result(number) for number in range(self._nodes.count)):
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
        return bool(news or requests)

    def _find_events(self) -> list[str]:
        found = []
        for number in range(self._nodes.count):
            folder = self._nodes.folder.node(number)
            if number == 0 and "running" not in self._events and (folder / "running.json").exists():
                self._events.add("running")
                found.append("running")
            if f"done {number}" not in self._events and (folder / "done.json").exists():
                self._events.add(f"done {number}")
                found.append("done")
        return found

    def _forward_mpi_requests(self) -> None:
        """Gives what mpirun wants to start on another node to the agent of that node."""
        addresses = (read_json(self._folder / GANG) or {}).get("hosts", [])
        for path in (self._nodes.folder.node(0) / mpi.REQUESTS).glob("*.json"):
            request = read_json(path) or {}
            number = mpi.find_node(f"{mpi.REQUESTS}/{path.name}", request, addresses)
            if number is None:
                continue
            there = self._nodes.folder.node(number) / mpi.REQUEST
            if not there.exists():
                write_json(there, request)

    # Ending

    async def stop(self) -> None:
        if self._starting is not None:
            self._is_cancelled = True
            self._starting.cancel()
            return
        self._give_up()

    async def kill(self) -> None:
        with contextlib.suppress(ComputeTargetException):
            await self._cluster.delete_pods(self.gang.names.pods)

    async def sweep(self) -> None:
        """Ends the pods, and with them everything in them."""
        self._give_up()
        with contextlib.suppress(ComputeTargetException):
            await self.gang.release(self.lost)

    def _give_up(self) -> None:
        """Writes a file that tells the agents to end."""
        if self._folder.exists():
            write_json(self._folder / STOP, {"version": 1, "at": time.time()})

    @property
    def waits_for(self) -> str:
        if "running" in self._events:
            return ""
        trouble = self._cluster.pods.trouble
        return f"waiting for Kubernetes: {trouble}" if trouble else self._activity or self.gang.words

    @property
    def lost(self) -> frozenset[str]:
        """The names of lost pods that may still be there."""
        return frozenset(self.gang.names.pods[number] for number in self._lost)

    def was_started(self, number: int) -> bool:
        return read_note(self._nodes.folder) is not None

    def problem_of(self, number: int) -> str:
        return self._lost.get(number, "")

    async def release(self) -> None:
        """Deletes the pods. Raises ComputeTargetException."""
        note = GangNote(self.gang.names.attempt, len(self._nodes.numbers), is_released=True)
        write_note(self._nodes.folder, note)
        await self.close()
        await self.gang.release(self.lost)
        self.gang.forget()

    async def close(self) -> None:
        if self._looker is not None:
            self._looker.cancel()
            await asyncio.gather(self._looker, return_exceptions=True)


def _as_this_user(options: PodOptions) -> PodOptions:
    """Pods write to the folder of a person, so they run as that person unless the target says otherwise."""
    if options.settings.run_as_user is not None or os.getuid() == 0:
        return options
    return replace(options, settings=replace(options.settings, run_as_user=os.getuid(), run_as_group=os.getgid()))
