"""Runs while the API server of Kubernetes is away: they go on, others wait and say so, and nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from tests.cluster.kubernetes_namespace import CLAIM, create_target
from tests.conftest import end_workspace, ended, until

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.shared.folders import WorkspaceFolder

# The folder is a claim that pods and this test see: it says what a script did, whatever Trainmaster knows of it.
COUNTS = """
import os, sys, time
from trainmaster import Run
folder, run = sys.argv[1], Run.get_context()
number = 0
while not os.path.exists(folder + "/enough"):
    with open(folder + "/count", "w") as file:
        file.write(str(number))
    print("line", number, flush=True)
    run.log("number", number)
    number += 1
    time.sleep(0.1)
"""
API_SERVER = "kube-apiserver"
LOG = "azureml-logs/70_driver_log.txt"


@pytest.fixture
def submit(tmp_path, kubernetes_namespace):
    """Submits a script to which the claim's folder of that name belongs."""

    def send(workspace, script, folder):
        source, folder = tmp_path / folder, kubernetes_namespace.folder / folder
        source.mkdir()
        folder.mkdir()
        (source / "train.py").write_text(script)
        estimator = Estimator(
            str(source),
            entry_script="train.py",
            script_params={str(folder): ""},
            compute_target="cluster",
            user_managed=True,
        )
        return Experiment(workspace, "outage").submit(estimator), folder

    return send


@pytest.fixture
def outage(kubernetes_cluster):
    """Switches the API server off, for the time of a context."""

    @contextlib.contextmanager
    def switch_off():
        kubernetes_cluster.kill(API_SERVER)
        try:
            yield
        finally:
            kubernetes_cluster.start(API_SERVER)

    return switch_off


@contextlib.contextmanager
def workspace_at(path: Path, namespace, **settings):
    workspace = Workspace.create("outage", path=path, show_output=False)
    create_target(workspace, "cluster", namespace, **settings)
    try:
        yield workspace
    finally:
        end_workspace(path)


def count(folder: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((folder / "count").read_text())
    return -1


def test_a_run_goes_on_and_others_wait(tmp_path, kubernetes_namespace, submit, outage):
    """What runs goes on; a submitted and a cancelled run say what they wait for, and go on when it is back."""
    volume = {"kind": "claim", "name": CLAIM, "path": str(kubernetes_namespace.folder)}
    with workspace_at(tmp_path / "workspace", kubernetes_namespace, volumes=[volume]) as workspace:
        goes_on, folder = submit(workspace, COUNTS, "on")
        cancelled, cancelled_folder = submit(workspace, COUNTS, "cancelled")
        until(lambda: min(count(folder), count(cancelled_folder)) > 0, what="both at work")
        until(lambda: goes_on.get_status() == cancelled.get_status() == "Running", what="both Running")
        with outage():
            new, new_folder = submit(workspace, COUNTS, "new")
            until(lambda: waits_for_kubernetes(new), what="the reason of the new run")
            cancelled.cancel()
            until(lambda: waits_for_kubernetes(cancelled), what="the reason of the cancelled run")
            assert (new.get_status(), cancelled.get_status()) == ("Queued", "CancelRequested")
            before = count(folder)
            until(lambda: count(folder) > before + 5, what="the run goes on")
            assert goes_on.get_status() == "Running"
        until(lambda: count(new_folder) > 0, what="the new run at work")
        for each in (folder, new_folder):
            (each / "enough").touch()
        assert [ended(run)["status"] for run in (goes_on, new, cancelled)] == ["Completed", "Completed", "Canceled"]
        numbers = range(count(folder) + 1)
        assert goes_on.get_metrics()["number"] == list(numbers), "nothing is missing and nothing comes twice"
        printed = goes_on.get_details_with_logs()["logFiles"][LOG]
        assert printed == "".join(f"line {number}\n" for number in numbers)
        assert goes_on.get_details().get("attempts", []) == []
        kubernetes_namespace.wait_until_empty()


def waits_for_kubernetes(run):
    words = run.get_details().get("waitingFor", "")
    return words.startswith("waiting for Kubernetes: the Kubernetes API server") and "cannot be reached" in words


def test_what_a_run_left_is_deleted_by_the_next_dispatcher(kubernetes_namespace, submit, outage):
    """The run ends while the API server is away, and so does its dispatcher."""
    place = kubernetes_namespace.folder / "workspace"
    with workspace_at(place, kubernetes_namespace, storage=kubernetes_namespace.folder) as workspace:
        run, folder = submit(workspace, COUNTS, "left")
        until(lambda: count(folder) > 0, what="the run at work")
        with outage():
            (folder / "enough").touch()
            assert ended(run)["status"] == "Completed"
            os.kill(int(WorkspaceFolder(place).lock.read_text()), signal.SIGKILL)
        assert kubernetes_namespace.pods_of(run), "nobody was there to delete them"
        following, folder = submit(workspace, COUNTS, "following")
        (folder / "enough").touch()
        assert ended(following)["status"] == "Completed"
        kubernetes_namespace.wait_until_empty()
