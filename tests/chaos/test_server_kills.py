"""SIGKILL for the server while clients submit: what was acknowledged is kept, and nothing happens twice."""

from __future__ import annotations

import http.client
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE
from tests.server_process import ServerProcess
from trainmaster import Experiment, ScriptRunConfig, Workspace

CLIENTS = 4
SUBMITS = 8
"""Of each client."""
KILLS = 6
SCRIPT = """
import os, sys
with open(sys.argv[1], "a") as file:
    file.write(os.environ["TRAINMASTER_RUN_ID"] + "\\n")
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "root")
    process.create_workspace("vision")
    yield process
    process.end()


class Client(threading.Thread):
    """Submits runs one after the other, and repeats each request with its key until it is answered."""

    def __init__(self, server: ServerProcess, record: dict[str, Any]) -> None:
        super().__init__()
        self._server = server
        self._record = record
        self.accepted: list[str] = []
        self.wrong: list[Any] = []

    def run(self) -> None:
        for _ in range(SUBMITS):
            run = {**self._record, "id": f"storm_{uuid.uuid4().hex}", "created_at": time.time()}
            answer = self._repeat("/api/v1/workspaces/vision/runs", {"run": run})
            self.accepted.append(answer["id"])
            # 409: it was created, but the server died before it could keep its answer.
            self._repeat("/api/v1/users", {"name": f"user-{uuid.uuid4().hex[:12]}"}, 409)

    def _repeat(self, path: str, body: dict[str, Any], also: int = 200) -> Any:
        key = uuid.uuid4().hex
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                answer = self._server.request("POST", path, body, headers={"Idempotency-Key": key})
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
                continue
            if answer.status in (200, also):
                return answer.json()
            if answer.status not in (409, 503):
                self.wrong.append((path, answer))
                return {"id": ""}
            time.sleep(0.02)
        raise AssertionError("no answer in time")


def test_no_submit_is_lost_or_doubled(server: ServerProcess, tmp_path: Path, project: Callable[..., Path]) -> None:
    witness = tmp_path / "witness"
    workspace = Workspace(path=server.root / "workspaces" / "vision")
    config = ScriptRunConfig(str(project(train=SCRIPT)), "train.py", arguments=[str(witness)])
    config.run_config.environment.python.user_managed_dependencies = True
    first = Experiment(workspace, "storm").submit(config)
    first.wait_for_completion()
    known = workspace.connection.call("runs.get", run_id=first.id)
    fields = ("experiment", "target", "spec", "snapshot_id", "type")
    record = {**{name: known[name] for name in fields}, "status": "NotStarted"}

    clients = [Client(server, record) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(7)
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.05, 0.5))
        server.kill()
        server.start()
    for client in clients:
        client.join(PATIENCE)

    assert [wrong for client in clients for wrong in client.wrong] == []
    accepted = [run_id for client in clients for run_id in client.accepted]
    assert len(set(accepted)) == CLIENTS * SUBMITS
    for run_id in accepted:
        with workspace.connection.watch(run_id) as watch:
            states = list(watch)
        assert states[-1]["status"] == "Completed"
    found = server.call("vision", "runs.list", query={"limit": 1000})
    assert sorted(run["id"] for run in found) == sorted([first.id, *accepted])
    assert {run["submitted_by"] for run in found if run["id"] != first.id} == {"admin"}
    assert sorted(witness.read_text().split()) == sorted([first.id, *accepted])
    users = server.request("GET", "/api/v1/users").json()["users"]
    assert len(users) == 1 + CLIENTS * SUBMITS
