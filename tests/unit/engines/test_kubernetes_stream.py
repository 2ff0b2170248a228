"""Starting an attempt whose files go over the API server: what an earlier dispatcher may have begun."""

from __future__ import annotations

import asyncio
import json

import pytest

from trainmaster.engines.engine import EngineContext, Nodes
from trainmaster.engines.kubernetes.notes import GangNote, write_note
from trainmaster.engines.kubernetes.pod_watch import PodWatch
from trainmaster.engines.kubernetes.pods import names_of
from trainmaster.engines.kubernetes.stream import StreamedAttempt
from trainmaster.engines.kubernetes.watch import Event
from trainmaster.shared.folders import RunFolder, WorkspaceFolder
from trainmaster.shared.job_spec import JobSpec, dump_spec
from trainmaster.shared.records import TargetRecord

RUNS = {"phase": "Running", "podIP": "10.0.0.1"}
ENDED = {"phase": "Succeeded"}


class Namespace:
    """Takes the place of a namespace with the pods of a run; keeps what was deleted."""

    workspace = "w"
    api = None

    def __init__(self, states):
        self.names = names_of("r", 1, len(states), "w")
        self.pods = PodWatch(None, "")  # type: ignore[arg-type]
        self.pods.start = lambda: None
        self.deleted = []
        found = zip(self.names.pods, states, strict=True)
        pods = [{"metadata": {"name": name}, "spec": {}, "status": state} for name, state in found if state]
        self.pods._handle(Event("reset", tuple(pods)))

    async def delete_pods(self, names):
        self.deleted += names
        raise asyncio.CancelledError

    async def list_events(self, name):
        return []


def start(tmp_path, states, noted):
    """Starts an attempt for which there are pods already; returns the pods that were deleted."""
    workspace = WorkspaceFolder(tmp_path)
    folder = RunFolder(tmp_path / "runs" / "r")
    folder.path.mkdir(parents=True)
    folder.spec.parent.mkdir(parents=True, exist_ok=True)
    folder.spec.write_text(dump_spec(JobSpec("", "t", script="train.py", node_count=len(states))))
    write_note(folder, GangNote(1, len(states)))
    for number in range(noted):
        folder.node(number).mkdir(parents=True)
        (folder.node(number) / "pod.json").write_text(json.dumps({"version": 1, "kit": "kits/k"}))
    target = TargetRecord("t", "kubernetes", len(states), 1, 0, options={"image": "python:3.11-slim"})
    nodes = Nodes("r", folder, len(states), target, tuple(range(len(states))))
    namespace = Namespace(states)
    attempt = StreamedAttempt(EngineContext(workspace, lambda run, event: None), namespace, nodes)  # type: ignore[arg-type]
    plans = [{"node": number, "layout": None} for number in range(len(states))]

    async def go():
        try:
            await asyncio.wait_for(attempt.start(plans, tmp_path / "kit"), 60)
        except asyncio.CancelledError:
            assert namespace.deleted

    asyncio.run(go())
    return namespace.deleted


@pytest.mark.parametrize("states", [[ENDED], [None], [ENDED, None], [RUNS, ENDED], [RUNS, None]])
def test_an_attempt_whose_agents_were_started_is_not_started_again(tmp_path, states):
    """The dispatcher was killed after it had started the agents, and a pod ended before the next one looked."""
    assert start(tmp_path, states, noted=len(states)) == []


@pytest.mark.parametrize(("states", "noted"), [([ENDED], 0), ([RUNS, ENDED], 0), ([RUNS, ENDED], 1)])
def test_pods_that_were_lost_before_agents_were_started_are_replaced(tmp_path, states, noted):
    assert start(tmp_path, states, noted) == list(names_of("r", 1, len(states), "w").pods)
