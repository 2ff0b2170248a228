"""When the first process of a pod lets the pod end (`tests/integration/test_pod_first_process.py` runs it)."""

from __future__ import annotations

import pytest

from trainmaster.job.pod import first_process
from trainmaster.job.pod.first_process import FirstProcess


class World:
    """The clock, and the other processes of the pod."""

    def __init__(self):
        self.now = 100.0
        self.others = []


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(first_process.time, "monotonic", lambda: made.now)
    monkeypatch.setattr(first_process, "_others", lambda: iter(made.others))
    return made


def test_abandoned_only_after_the_last_visit(tmp_path, world):
    process = FirstProcess(str(tmp_path), 60.0)
    assert not process._may_end()
    world.now += 50
    world.others = [7]
    assert not process._may_end()
    world.now += 50
    assert not process._may_end()
    world.others = []
    world.now += 59
    assert not process._may_end(), "somebody was there 59 seconds ago"
    world.now += 2
    assert process._may_end()


def test_fetched(tmp_path, world):
    world.others = [7]
    process = FirstProcess(str(tmp_path), 60.0)
    assert not process._may_end()
    (tmp_path / "fetched").write_text(".")
    assert process._may_end()


def test_told_to_end(tmp_path, world):
    """With an agent that is there or has been there, it waits as long as somebody may fetch what the agent wrote."""
    process = FirstProcess(str(tmp_path), 60.0)
    process._is_told = True
    world.others = [7]
    assert process._may_end(), "there is nothing to be fetched"
    node = tmp_path / "runs" / "r" / "nodes" / "0"
    node.mkdir(parents=True)
    (node / "agent.json").write_text('{"pid": 7, "start_time": 1}')
    assert not process._may_end()
    world.others = []
    assert process._may_end()
