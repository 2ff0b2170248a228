"""Runs of MLflow's clients are runs of the workspace: in lists, searches, commands and when they are deleted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.backends import folder_of
from tests.conftest import dispatcher_handle, until, wait_gone
from tests.mlflow_calls import get_run, post, refuse, send, start_run

from trainmaster import Experiment, Run, Workspace
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = pytest.mark.timeout(300)

NAME = "it's a test/of runs"


def _end(workspace: Workspace, run_id: str) -> None:
    post(workspace, "runs/update", run_id=run_id, status="FINISHED", end_time=1_900_000_000_000)


def _command(workspace: Workspace, *words: str) -> Any:
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "trainmaster.cli", *words, "--workspace", str(folder_of(workspace)), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_the_sdk_and_the_commands_show_them(workspace: Workspace, submit: Callable[..., Run]) -> None:
    run_id = start_run(workspace, NAME, run_name="first", user_id="ada", tags=[{"key": "kind", "value": "base"}])
    child_id = start_run(workspace, NAME, tags=[{"key": "mlflow.parentRunId", "value": run_id}])
    post(workspace, "runs/log-parameter", run_id=run_id, key="lr", value="0.125")
    post(workspace, "runs/log-metric", run_id=run_id, key="loss", value=2.5, timestamp=1000, step=1)

    # The experiment, whose name v1 would not have allowed.
    experiment = workspace.experiments[NAME]
    assert Experiment(workspace, NAME).id == experiment.id
    assert [run.id for run in experiment.get_runs()] == [run_id]
    assert "it%5C%27s" in experiment.get_portal_url() or "runs" in experiment.get_portal_url()
    with pytest.raises(UserErrorException):
        Experiment(workspace, "never/created")

    run = Run.get(workspace, run_id)
    assert (run.type, run.status, run.display_name) == ("mlflow", "Running", "first")
    assert run.get_tags()["kind"] == "base"
    assert run.get_metrics() == {"loss": 2.5}
    assert run.get_details()["parameters"] == {"lr": "0.125"}
    assert run.get_details()["submittedBy"] == "ada"
    assert [each.id for each in run.get_children()] == [child_id]

    # Names are the same on both sides, whoever changes them.
    run.display_name = "second"
    assert get_run(workspace, run_id)["info"]["run_name"] == "second"
    run.tag("mlflow.runName", "third")
    assert get_run(workspace, run_id)["info"]["run_name"] == "third"
    assert Run.get(workspace, run_id).display_name == "third"

    page = workspace.connection.call(
        "runs.search", filter="argument.lr < 0.2 and type = 'mlflow'", columns=["id", "argument.lr", "metric.loss"]
    )
    assert page["rows"] == [{"id": run_id, "argument.lr": 0.125, "metric.loss": 2.5}]
    shown = _command(workspace, "show", run_id)
    assert shown["display_name"] == "third" and shown["parameters"] == {"lr": "0.125"}
    assert [run["id"] for run in _command(workspace, "runs", "--experiment", NAME)] == [run_id]
    assert workspace.connection.call("runs.explain", run_id=run_id)["reason"]
    assert workspace.connection.call("runs.lineage", run_id=run_id)

    # A run of the SDK in the same experiment, whose id is a folder.
    job = submit("print('done')", experiment=NAME)
    job.wait_for_completion()
    assert {run.id for run in experiment.get_runs()} == {run_id, job.id}

    # They are archived and deleted like others.
    _end(workspace, child_id)
    _end(workspace, run_id)
    workspace.connection.call("runs.archive", run_ids=[run_id])
    assert get_run(workspace, run_id)["info"]["lifecycle_stage"] == "deleted"
    workspace.connection.call("runs.restore", run_ids=[run_id])
    assert get_run(workspace, child_id)["info"]["lifecycle_stage"] == "active"
    assert _command(workspace, "runs", "delete", run_id)["removed"] == [run_id]
    assert send(workspace, "GET", "runs/get", run_id=child_id)[0] == 404
    assert not (folder_of(workspace) / "runs" / run_id).exists()


def test_a_job_stays_ended_and_a_run_of_mlflow_goes_on(workspace: Workspace, submit: Callable[..., Run]) -> None:
    job = submit("from trainmaster import Run; Run.get_context().log('loss', 0.5)", script_params={"--lr": 0.1})
    job.wait_for_completion()
    seen = get_run(workspace, job.id)
    assert seen["info"]["status"] == "FINISHED" and seen["info"]["end_time"] >= seen["info"]["start_time"]
    assert seen["data"]["params"] == [{"key": "lr", "value": "0.1"}]
    assert [(each["key"], each["value"]) for each in seen["data"]["metrics"]] == [("loss", 0.5)]
    assert "stays so" in refuse(workspace, "INVALID_PARAMETER_VALUE", "runs/update", run_id=job.id, status="RUNNING")
    assert job.get_status() == "Completed"
    # Saying once more that it has finished is no change.
    post(workspace, "runs/update", run_id=job.id, status="FINISHED", end_time=5)
    assert get_run(workspace, job.id)["info"] == seen["info"]
    post(workspace, "runs/log-parameter", run_id=job.id, key="found", value="yes")
    assert {"key": "found", "value": "yes"} in get_run(workspace, job.id)["data"]["params"]

    run_id = start_run(workspace)
    _end(workspace, run_id)
    run = Run.get(workspace, run_id)
    assert run.get_status() == "Completed"
    post(workspace, "runs/update", run_id=run_id, status="RUNNING")
    assert run.get_status() == "Running"
    assert get_run(workspace, run_id)["info"]["end_time"] == 1_900_000_000_000
    # Somebody who looks at the page cancels it.
    run.cancel()
    info = get_run(workspace, run_id)["info"]
    assert info["status"] == "KILLED" and info["end_time"] < 1_900_000_000_000


def test_an_open_run_of_mlflow_keeps_nobody_waiting(workspace: Workspace) -> None:
    """No process belongs to it, so that it may stay open for ever."""
    start_run(workspace)
    assert workspace.connection.call("status")["active"] == []


def test_a_parent_that_is_set_later(workspace: Workspace) -> None:
    first, second = start_run(workspace), start_run(workspace)

    def set_parent(run_id: str, parent: str) -> Any:
        return post(workspace, "runs/set-tag", run_id=run_id, key="mlflow.parentRunId", value=parent)

    set_parent(second, first)
    assert [run.id for run in Run.get(workspace, first).get_children()] == [second]
    # A circle is only in the tags.
    set_parent(first, second)
    set_parent(first, first)
    set_parent(first, "no such run")
    assert Run.get(workspace, first).parent is None
    assert [run.id for run in Run.get(workspace, first).get_children(recursive=True)] == [second]


def test_what_was_acknowledged_outlives_the_dispatcher(workspace: Workspace) -> None:
    """Kill the dispatcher again and again while two clients log, each of them its own parameters and one of both."""
    folder = WorkspaceFolder(folder_of(workspace))
    run_id = start_run(workspace)
    acknowledged: list[dict[str, str]] = [{}, {}]
    winners: list[set[str]] = [set(), set()]
    is_over = threading.Event()

    def log(client: int) -> None:
        ws = Workspace(path=folder.path)
        number = 0
        while not is_over.is_set():
            number += 1
            own, common, value = f"client{client}.{number}", f"common.{number}", str(client)
            status, _ = send(ws, "POST", "runs/log-parameter", run_id=run_id, key=own, value=value)
            assert status == 200
            acknowledged[client][own] = value
            status, body = send(ws, "POST", "runs/log-parameter", run_id=run_id, key=common, value=value)
            if status == 200:
                winners[client].add(common)
            else:
                assert "Changing param values is not allowed" in body["message"]
        ws.connection.close()

    with ThreadPoolExecutor(2) as pool:
        clients = [pool.submit(log, client) for client in range(2)]
        try:
            for count in (5, 10):
                until(lambda: any(each.done() for each in clients) or min(map(len, acknowledged)) >= count)  # noqa: B023
                handle = dispatcher_handle(folder)
                assert handle is not None
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                wait_gone(handle)
            until(lambda: any(each.done() for each in clients) or min(map(len, acknowledged)) >= 15)
        finally:
            is_over.set()
        for client in clients:
            client.result()
    params = {each["key"]: each["value"] for each in get_run(workspace, run_id)["data"]["params"]}
    assert params.items() >= {**acknowledged[0], **acknowledged[1]}.items()
    assert not winners[0] & winners[1]
    assert all(params[name] == str(client) for client in range(2) for name in winners[client])
