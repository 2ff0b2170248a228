"""The end of services: the dispatcher ends them once no node needs them, at any moment after the report."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import pytest

from trainmaster.job.agent import agent as agents
from trainmaster.job.agent.agent import Agent


class Interrupts:
    """Takes the place of signals: the request to stop arrives after `stop_requests` was read `reads` more times."""

    def __init__(self):
        self.reads = float("inf")

    @property
    def stop_requests(self):
        self.reads -= 1
        return int(self.reads < 0)

    def wait(self, seconds):
        self.reads = 0


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """The agent of a node whose worker has ended, while its parameter server goes on."""
    plan = SimpleNamespace(alone=False, run_id="r", node=0, grace_seconds=1, notify=None, time_limit_seconds=1)
    made = Agent(plan, str(tmp_path), None, Interrupts())
    worker = SimpleNamespace(service=False, has_ended=True, has_failed=False, was_stopped=False)
    server = SimpleNamespace(service=True, has_ended=False, has_failed=False, was_stopped=False)
    made._ranks = [worker, server]
    monkeypatch.setattr(agents.ranks, "reap", lambda: None)
    monkeypatch.setattr(
        Agent, "_notify", lambda self, word: setattr(self._interrupts, "reads", self.reads_after_report)
    )
    monkeypatch.setattr(Agent, "_whole_tree", lambda self: SimpleNamespace(ask_to_end=lambda: None))
    return made


@pytest.mark.parametrize("reads", range(6))
def test_nothing_is_cancelled_whenever_the_answer_to_the_report_comes(agent, tmp_path, reads):
    agent.reads_after_report = reads
    agent._wait_for_ranks()
    assert (agent._reason, agent._kill_at) == ("exited", None)
    assert json.loads((tmp_path / "done.json").read_text())["version"] == 1


def test_the_time_limit_holds_for_services(agent):
    agent.reads_after_report = float("inf")
    agent._limit_at = time.monotonic()
    agent._plan.grace_seconds = 0
    agent._wait_for_ranks()
    assert agent._reason == "timeout"
