"""Why pods ended, where the API server knows more than the watch: an agent that was stopped says only that."""

from __future__ import annotations

import asyncio
import json

import pytest

from trainmaster.engines.engine import Ending, Nodes
from trainmaster.engines.kubernetes import losses
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.engines.kubernetes.cluster import Cluster
from trainmaster.engines.kubernetes.losses import find_ending
from trainmaster.engines.kubernetes.pod_watch import PodWatch
from trainmaster.engines.kubernetes.watch import Event
from trainmaster.engines.remote.channel import Unreachable
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.records import TargetRecord
from trainmaster.shared.retry import Backoff

RUNS = {"metadata": {"name": "pod0"}, "spec": {"nodeName": "m"}, "status": {"phase": "Running"}}
LEAVES = {**RUNS, "metadata": {"name": "pod0", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
GONE = ApiError("there is none", status=404)
AWAY = Unreachable("it does not answer")


class Api:
    """Takes the place of an API server whose answers are given."""

    pods, events = "/pods", "/events"

    def __init__(self, answers):
        self.answers = list(answers)
        self.asked = 0

    async def get(self, path):
        assert path == "/pods/pod0"
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def list_objects(self, path, fields=""):
        return [], ""


class Attempt:
    """An attempt with one pod, on which an agent was started."""

    class gang:
        is_released = False

        class names:
            pods = ("pod0",)

    def was_started(self, number):
        return True

    def problem_of(self, number):
        return ""


def find(tmp_path, answers, result) -> tuple[Ending | None, int]:
    """What is found while the watch still has the pod running, and how often the server was asked for it."""
    folder = RunFolder(tmp_path / "r")
    folder.node(0).mkdir(parents=True, exist_ok=True)
    (folder.node(0) / "result.json").write_text(json.dumps(result))
    nodes = Nodes("r", folder, 1, TargetRecord("t", "kubernetes", 1, 1, 0), (0,))
    cluster = Cluster.__new__(Cluster)
    cluster.api = api = Api(answers)  # type: ignore[assignment]
    cluster.pods = PodWatch(None, "")  # type: ignore[arg-type]

    async def look():
        cluster.pods._handle(Event("reset", (RUNS,)))
        return await find_ending(cluster, Attempt(), nodes)  # type: ignore[arg-type]

    return asyncio.run(look()), api.asked


@pytest.mark.parametrize("answers", [[LEAVES], [GONE], [AWAY, AWAY, GONE]], ids=["leaves", "gone", "away"])
def test_a_pod_was_deleted_and_the_watch_is_behind(tmp_path, monkeypatch, answers):
    monkeypatch.setattr(Backoff, "next_pause", lambda self: 0.0)
    found, asked = find(tmp_path, answers, {"reason": "cancelled"})
    assert found is not None and found.error is not None
    assert (found.error.code, found.again, asked) == ("PodDeleted", True, len(answers))


def test_an_agent_that_somebody_stopped_in_its_pod_says_so_itself(tmp_path):
    assert find(tmp_path, [RUNS], {"reason": "cancelled"}) == (None, 1)


def test_nobody_knows_while_the_server_stays_away(tmp_path, monkeypatch):
    monkeypatch.setattr(losses, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(Backoff, "next_pause", lambda self: 0.0)
    found, asked = find(tmp_path, [AWAY], {"reason": "cancelled"})
    assert found is None and asked


def test_a_script_that_failed_needs_no_question(tmp_path):
    assert find(tmp_path, [GONE], {"reason": "exited", "first_failure": {"exit_code": 1}}) == (None, 0)
