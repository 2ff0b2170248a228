"""Parts of the engine for Kubernetes that need no cluster."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from trainmaster.engines.engine import Nodes
from trainmaster.engines.kubernetes.cleaning import is_gang_needed, release_earlier
from trainmaster.engines.kubernetes.gang_control import Gang
from trainmaster.engines.kubernetes.notes import GangNote, read_note, write_note
from trainmaster.engines.kubernetes.pod_watch import PodWatch, reduce_pod
from trainmaster.engines.kubernetes.pods import names_of
from trainmaster.engines.kubernetes.watch import Event
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.records import TargetRecord


def pod(name, uid="1", **status):
    return {"metadata": {"name": name, "uid": uid}, "spec": {}, "status": status}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "r").mkdir()
    return RunFolder(tmp_path / "r")


class TestNotes:
    def test_kept(self, folder):
        assert read_note(folder) is None
        write_note(folder, GangNote(1, 2))
        assert read_note(folder) == GangNote(1, 2)
        assert read_note(replace(folder, attempt=2)) is None
        assert read_note(replace(folder, attempt=0)) is None

    def test_a_run_that_was_deleted_does_not_come_back(self, tmp_path):
        gone = RunFolder(tmp_path / "gone")
        write_note(gone, GangNote(1, 2, is_released=True))
        assert not gone.path.exists()

    def test_pods_of_a_run_that_goes_on_are_needed(self, folder):
        write_note(folder, GangNote(1, 2))
        assert is_gang_needed(folder, "1")
        assert not is_gang_needed(folder, "2")

    def test_pods_of_a_finished_run_are_not_needed(self, folder):
        write_note(folder, GangNote(1, 2, is_released=True))
        assert not is_gang_needed(folder, "1")

    def test_pods_of_an_unknown_run_are_not_needed(self, tmp_path):
        assert not is_gang_needed(RunFolder(tmp_path / "other"), "1")

    def test_the_next_attempt_may_take_over_pods(self, folder):
        write_note(folder, GangNote(1, 2))
        _fail(folder)
        assert is_gang_needed(folder, "1")
        write_note(replace(folder, attempt=2), GangNote(2, 2))
        assert not is_gang_needed(folder, "1")
        assert is_gang_needed(folder, "2")


class Deletions:
    """Takes the place of a namespace; keeps what was deleted."""

    workspace = "w"

    def __init__(self):
        self.services = []

    async def delete_gang(self, names):
        self.services.append(names.service)


def test_pods_that_have_done_their_work_are_not_created_again():
    """A short script may have ended before the watch has shown all pods running."""
    names = names_of("r", 1, 2, "w")
    cluster = Deletions()
    cluster.pods = PodWatch(None, "")  # type: ignore[arg-type]
    cluster.pods.start = lambda: None
    cluster.pods._handle(Event("reset", tuple(pod(name, phase="Succeeded") for name in names.pods)))
    gang = Gang(cluster, names, make_pod=None, gang_seconds=1, has_begun=lambda: True)  # type: ignore[arg-type]
    assert [each["metadata"]["name"] for each in asyncio.run(gang.assemble())] == list(names.pods)


class OnePod(Deletions):
    """A namespace in which each pod that is created gets the next of some states."""

    def __init__(self, names, states):
        super().__init__()
        self.pods = PodWatch(None, "")  # type: ignore[arg-type]
        self.pods.start = lambda: None
        self.pods._handle(Event("reset", ()))
        self.name, self.states, self.deleted = names.pods[0], list(states), 0

    async def create_service(self, body):
        return {**body, "metadata": {**body["metadata"], "uid": "1"}}

    async def create_pod(self, body):
        found = self.states.pop(0)
        self.pods.add({**found, "metadata": {"name": self.name, "uid": str(len(self.states))}})

    async def delete_pods(self, names):
        self.deleted += 1
        self.pods._handle(Event("deleted", (self.pods.get(self.name),)))

    async def list_events(self, name):
        return []


def test_a_pod_whose_machine_was_interrupted_is_replaced():
    """The kubelet was killed while it created the container, and the name of the container stays in use."""
    names = names_of("r", 1, 1, "w")
    waiting = {"reason": "CreateContainerError", "message": 'name "node_1" is reserved for "8f3c"'}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    stuck = {
        "spec": {"nodeName": "node1"},
        "status": {
            "phase": "Pending",
            "conditions": [scheduled],
            "containerStatuses": [{"name": "node", "state": {"waiting": waiting}}],
        },
    }
    runs = {"spec": {"nodeName": "node1"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    cluster = OnePod(names, [stuck, runs])
    gang = Gang(cluster, names, lambda number, owner: {}, gang_seconds=60)  # type: ignore[arg-type]
    found = asyncio.run(asyncio.wait_for(gang.assemble(), 60))
    assert (cluster.deleted, found[0]["status"]["podIP"]) == (1, "10.0.0.1")


def test_pods_of_earlier_attempts_are_deleted(folder):
    """Also if the last attempt was cancelled before it began."""
    write_note(folder, GangNote(1, 2))
    write_note(replace(folder, attempt=2), GangNote(1, 2))
    write_note(replace(folder, attempt=3), GangNote(3, 1))
    nodes = Nodes("r", replace(folder, attempt=4), 1, TargetRecord("t", "kubernetes", 1, 1, 0), (0,))
    cluster = Deletions()
    asyncio.run(release_earlier(cluster, nodes, gang=3))  # type: ignore[arg-type]
    assert {name.rpartition("-")[2] for name in cluster.services} == {"1"}
    asyncio.run(release_earlier(cluster, nodes, gang=4))  # type: ignore[arg-type]
    assert cluster.services[-1].endswith("-3")
    assert read_note(folder).is_released
    count = len(cluster.services)
    asyncio.run(release_earlier(cluster, nodes, gang=4))  # type: ignore[arg-type]
    assert len(cluster.services) == count, "once is enough"


def _fail(folder):
    folder.failure.parent.mkdir(parents=True, exist_ok=True)
    error = {"code": "ScriptFailed", "message": "", "details": {}}
    folder.failure.write_text(
        json.dumps({"version": 1, "number": 1, "error": error, "started_at": None, "ended_at": 1.0, "again": False})
    )


class TestPodWatch:
    def test_pods_are_kept_small(self):
        whole = pod("a", phase="Running")
        whole["metadata"]["managedFields"] = [{"manager": "kubelet"}]
        whole["spec"] = {"nodeName": "m", "containers": [{"name": "main", "command": ["long"], "image": "i"}]}
        small = reduce_pod(whole)
        assert small["metadata"] == {"name": "a", "uid": "1"}
        assert small["spec"] == {"nodeName": "m", "containers": [{"name": "main", "image": "i"}]}
        assert small["status"] == {"phase": "Running"}

    def test_changes(self):
        pods = PodWatch(None, "")  # type: ignore[arg-type]
        pods._handle(Event("reset", (pod("a"), pod("b"))))
        pods._handle(Event("modified", (pod("a", phase="Running"),)))
        assert pods.get("a")["status"] == {"phase": "Running"}
        pods._handle(Event("deleted", (pod("a", phase="Failed"),)))
        assert pods.get("a") is None
        assert pods.last_seen("a")["status"] == {"phase": "Failed"}
        # After a list, what is not in it is gone.
        pods._handle(Event("reset", ()))
        assert pods.get("b") is None
        assert pods.last_seen("b") is not None
        pods.forget("b")
        assert pods.last_seen("b") is None

    def test_an_api_server_that_is_away(self):
        pods = PodWatch(None, "")  # type: ignore[arg-type]
        assert pods.answering_for == 0.0
        pods._handle(Event("reset", (pod("a"),)))
        assert pods.answering_for > 0.0
        pods._handle(Event("away", error=ComputeTargetException("it is away")))
        assert (pods.answering_for, pods.trouble) == (0.0, "it is away")
        assert pods.get("a") is not None
        pods._handle(Event("back"))
        assert pods.answering_for > 0.0
        assert pods.trouble == ""

    def test_waiting(self):
        pods = PodWatch(None, "")  # type: ignore[arg-type]

        async def wait():
            waiting = asyncio.ensure_future(pods.wait_for(["a"], lambda: pods.get("a") is not None, 60))
            await asyncio.sleep(0)
            pods.add(pod("a"))
            assert await waiting
            assert not await pods.wait_for(["a"], lambda: False, 0)

        asyncio.run(wait())

    def test_a_change_wakes_only_those_who_wait_for_that_pod(self):
        pods = PodWatch(None, "")  # type: ignore[arg-type]
        with pods.changes_of(["a", "b"]) as ours, pods.changes_of(["c"]) as others:
            pods._handle(Event("modified", (pod("b"),)))
            assert (ours.is_set(), others.is_set()) == (True, False)
            ours.clear()
            pods._handle(Event("deleted", (pod("c"),)))
            assert (ours.is_set(), others.is_set()) == (False, True)
            # What is news for all of them.
            for news in (Event("away"), Event("back"), Event("reset", (pod("a"),))):
                ours.clear(), others.clear()
                pods._handle(news)
                assert ours.is_set() and others.is_set(), news
        assert pods._waiting == {}

    def test_a_created_pod_does_not_replace_newer_news(self):
        pods = PodWatch(None, "")  # type: ignore[arg-type]
        pods._handle(Event("added", (pod("a", phase="Running"),)))
        pods.add(pod("a", phase="Pending"))
        assert pods.get("a")["status"] == {"phase": "Running"}
        pods.add(pod("a", uid="2", phase="Pending"))
        assert pods.get("a")["status"] == {"phase": "Pending"}
