"""Answers that a server keeps: nobody who knows of a change gets one from before it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conftest import run_folder, until
from tests.server_people import add_user
from tests.server_process import ServerProcess

from trainmaster import Experiment, Workspace
from trainmaster.sdk.run.run import Run

TOP = "/api/v1/workspaces/vision"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    process.create_workspace("vision")
    yield process
    process.end()


@pytest.fixture(scope="module")
def workspace(server: ServerProcess) -> Workspace:
    """The workspace as its own machine sees it. What is changed here does not go through the server."""
    return Workspace(path=server.root / "workspaces" / "vision")


@pytest.fixture
def run(workspace: Workspace) -> Run:
    """A run that has ended."""
    with Experiment(workspace, "first").start_logging(snapshot_directory=None) as started:
        started.log("loss", 1.0)
    return started


def ask(server: ServerProcess, path: str) -> Any:
    answer = server.request("GET", f"{TOP}/{path}")
    assert answer.status == 200, answer
    return answer.json()


def find_dispatcher(server: ServerProcess) -> int:
    return int((server.root / "workspaces/vision/dispatcher.lock").read_text())


def test_the_dispatcher_is_not_asked_twice(server: ServerProcess, run: Run) -> None:
    paths = ("runs?limit=5", f"runs/{run.id}", "experiments", f"runs/{run.id}/metrics")
    # The folder of journals must have been the same for a second, until it is believed not to change.
    expected = until(lambda: read_while_stopped(server, paths))
    assert expected == [ask(server, path) for path in paths]


def read_while_stopped(server: ServerProcess, paths: tuple[str, ...]) -> list[Any] | None:
    """What the server answers while its dispatcher cannot; None if it asks the dispatcher."""
    before = [ask(server, path) for path in paths]
    found: list[Any] = []
    dispatcher = find_dispatcher(server)
    os.kill(dispatcher, signal.SIGSTOP)
    try:
        thread = threading.Thread(target=lambda: found.extend(ask(server, path) for path in paths))
        thread.start()
        thread.join(0.5)
        answered = len(found) == len(paths)
    finally:
        os.kill(dispatcher, signal.SIGCONT)
    thread.join()
    assert found == before
    return found if answered else None


def test_a_change_is_seen_by_whoever_reads_after_it(server: ServerProcess, run: Run) -> None:
    """While others ask for the same, so that their answers are kept at any moment."""
    is_over = threading.Event()

    def keep_asking() -> None:
        while not is_over.is_set():
            ask(server, f"runs/{run.id}")
            ask(server, "runs?limit=5&columns=id&columns=tags")

    others = [threading.Thread(target=keep_asking) for _ in range(3)]
    for other in others:
        other.start()
    try:
        for number in range(40):
            run.tag("number", str(number))
            assert ask(server, f"runs/{run.id}")["tags"]["number"] == str(number)
            row = ask(server, "runs?limit=5&columns=id&columns=tags")["rows"][0]
            assert row == {"id": run.id, "tags": {"number": str(number)}}
    finally:
        is_over.set()
        for other in others:
            other.join()


def test_a_value_that_was_logged_is_seen_by_whoever_reads_after_it(server: ServerProcess, run: Run) -> None:
    """Values are in the journals of the run, and in the store only when somebody asks."""
    for number in range(2, 12):
        run.log("loss", float(number))
        for _ in range(2):
            assert ask(server, f"runs/{run.id}/metrics")["metrics"][0]["values"][-1] == number


@pytest.mark.parametrize("count", range(3))
def test_no_answer_outlives_its_dispatcher(server: ServerProcess, run: Run, count: int) -> None:
    for number in range(3):
        ask(server, f"runs/{run.id}")
        ask(server, f"runs/{run.id}")
        os.kill(find_dispatcher(server), signal.SIGKILL)
        # Starts the next one, which the server does not know yet.
        run.tag("number", f"{count}-{number}")
        assert ask(server, f"runs/{run.id}")["tags"]["number"] == f"{count}-{number}"


def test_a_kept_answer_is_not_for_everybody(server: ServerProcess, run: Run) -> None:
    ask(server, f"runs/{run.id}")
    assert ask(server, f"runs/{run.id}")["id"] == run.id
    assert server.request("GET", f"{TOP}/runs/{run.id}", token="").status == 401
    token = add_user(server, "stranger")
    assert server.request("GET", f"{TOP}/runs/{run.id}", token=token).status == 403


def test_a_log_is_read_again_when_it_has_changed(server: ServerProcess, run: Run) -> None:
    log = run_folder(run).files / "azureml-logs" / "70_driver_log.txt"
    log.parent.mkdir(exist_ok=True)
    path = f"{TOP}/runs/{run.id}/logs/{log.name}"
    log.write_bytes(b"one\n")
    # From then on it is kept.
    until(lambda: time.time() - log.stat().st_ctime > 1.1)
    for _ in range(2):
        assert server.request("GET", path).body == b"one\n"
    log.write_bytes(b"two\n")
    assert server.request("GET", path).body == b"two\n"
    with open(log, "ab") as file:
        file.write(b"three\n")
    assert server.request("GET", path).body == b"two\nthree\n"
