"""`trainmaster runs delete` and `runs prune` as a person uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import dispatcher_handle, end_workspace, ended, wait_gone
from tests.integration.conftest import Gate

from trainmaster import (
    Estimator,
    Experiment,
    HyperDriveConfig,
    Model,
    PrimaryMetricGoal,
    RandomParameterSampling,
    Workspace,
    uniform,
)
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.run.run import Run
from trainmaster.shared.folders import WorkspaceFolder

TRAIN = """\
from trainmaster import Run
run = Run.get_context()
run.log("loss", 1)
with open("outputs/weights", "w") as file:
    file.write("w" * 100_000)
with run.child_run("fold") as child:
    child.log("loss", 2)
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = Workspace.create("removing", path=tmp_path_factory.mktemp("removing") / "workspace", show_output=False)
    yield made
    end_workspace(made.path)


@pytest.fixture
def submit(workspace: Workspace, tmp_path: Path) -> Callable[..., Run]:
    def send(script: str = TRAIN, experiment: str = "exp") -> Run:
        source = tmp_path / f"source-{len(list(tmp_path.iterdir()))}"
        source.mkdir()
        (source / "train.py").write_text(f"{script}# {source}\n")
        return Experiment(workspace, experiment).submit(
            Estimator(str(source), compute_target="local", entry_script="train.py", user_managed=True)
        )

    return send


def command(workspace: Workspace, *argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "trainmaster.cli", *argv, "--workspace", str(workspace.path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
    return done


def data(workspace: Workspace, *argv: str) -> Any:
    return json.loads(command(workspace, *argv, "--json").stdout)


def test_a_run_is_deleted_and_its_model_stays(workspace: Workspace, submit: Callable[..., Run]) -> None:
    folder = WorkspaceFolder(workspace.path)
    run = submit()
    assert ended(run)["status"] == "Completed"
    model = run.register_model("net", "outputs/weights")
    would = data(workspace, "runs", "delete", run.id, "--dry-run")
    assert would["dry_run"] and run.get_metrics() == {"loss": 1}
    done = data(workspace, "runs", "delete", run.id)
    assert (done["removed"], done["children"], done["left"], done["dry_run"]) == ([run.id], 1, [], False)
    assert done["bytes"] >= 100_000
    assert "no run" in command(workspace, "show", run.id, code=4).stderr
    assert not folder.run(run.id).path.exists() and os.listdir(folder.runs) == []
    # What it was trained with is kept with the model, and so is the snapshot.
    again = Model(workspace, "net")
    assert again.run is None and again.run_id == run.id and again.lineage == model.lineage
    assert (folder.snapshots / f"{again.lineage['snapshot_id']}.json").exists()
    again.verify()
    # An experiment whose runs are all gone can go.
    Experiment.delete(workspace, Experiment(workspace, "exp").id)


def test_one_that_goes_on_is_refused(
    workspace: Workspace, submit: Callable[..., Run], gate: Callable[..., Gate]
) -> None:
    door = gate()
    ready, going = submit(), submit(door.wait)
    assert ended(ready)["status"] == "Completed"
    door.await_arrival()
    failed = command(workspace, "runs", "delete", ready.id, going.id, code=2)
    assert f"run {going.id} has not ended" in failed.stderr and f"trainmaster cancel {going.id}" in failed.stderr
    assert ready.get_metrics() == {"loss": 1}
    door.open()
    assert ended(going)["status"] == "Completed"
    assert data(workspace, "runs", "delete", ready.id, "last")["removed"] == [ready.id, going.id]


def test_old_runs_go_but_for_the_newest_of_each_experiment(workspace: Workspace, submit: Callable[..., Run]) -> None:
    runs = [submit(experiment=name) for name in ("one", "one", "two", "one")]
    for run in runs:
        assert ended(run)["status"] == "Completed"
    runs[0].register_model("kept", "outputs/weights")
    assert "needs --older-than" in command(workspace, "runs", "prune", code=2).stderr
    assert "is not a time span" in command(workspace, "runs", "prune", "--older-than", "soon", code=2).stderr
    assert "have ended" in command(workspace, "runs", "prune", "--keep", "0", "--status", "running", code=2).stderr
    assert data(workspace, "runs", "prune", "--older-than", "1h")["removed"] == []
    would = command(workspace, "runs", "prune", "--keep", "1", "--dry-run")
    assert would.stdout.split() == [runs[1].id]
    assert "Would delete 1 run with 1 child run" in would.stderr and "registered from them: 1 run." in would.stderr
    done = data(workspace, "runs", "prune", "--keep", "1", "--older-than", "0s")
    assert (done["removed"], done["kept"]) == ([runs[1].id], {"models": [runs[0].id], "used": []})
    left = {each["id"] for each in data(workspace, "runs")}
    assert left == {runs[0].id, runs[2].id, runs[3].id}
    assert data(workspace, "runs", "prune", "--keep", "0", "-e", "two", "--status", "completed")["removed"] == [
        runs[2].id
    ]


def test_a_new_dispatcher_finishes_what_a_killed_one_began(workspace: Workspace, submit: Callable[..., Run]) -> None:
    """The moments of the kill are those of tests/unit/dispatcher/runs/test_removal.py; here it is the way back."""
    folder = WorkspaceFolder(workspace.path)
    run = submit()
    assert ended(run)["status"] == "Completed"
    handle = dispatcher_handle(folder)
    assert handle is not None
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    wait_gone(handle)
    # As it would be if it had been killed after it wrote down what is to go.
    store = Store.open(folder.database)
    store.facts.put("runs.removing", [run.id])
    store.close()
    # Whatever is to be removed next waits until that is done.
    assert data(workspace, "runs", "prune", "--older-than", "100w")["removed"] == []
    assert run.id not in {each["id"] for each in data(workspace, "runs", "-a")}
    assert not folder.run(run.id).path.exists() and not (folder.runs / ".removed").exists()


ATTACK = """\
import json, os, sys
folder = os.environ["TRAINMASTER_RUN_FOLDER"]
with open(os.path.join(folder, "journals", "0-666-attack.jsonl"), "w") as journal:
    for child in sys.argv[1:]:
        journal.write(json.dumps({"k": "child", "id": child, "name": "evil", "t": 1.0}) + "\\n")
"""


def test_a_script_cannot_have_other_folders_deleted(workspace: Workspace, tmp_path: Path) -> None:
    """A child is what its journal says: the id of one must not be the path of something else."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    relative = os.path.relpath(victim, WorkspaceFolder(workspace.path).runs)
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text(ATTACK)
    run = Experiment(workspace, "attack").submit(
        Estimator(
            str(source),
            compute_target="local",
            entry_script="train.py",
            user_managed=True,
            script_params={str(victim): relative},
        )
    )
    assert ended(run)["status"] == "Completed"
    assert list(run.get_children()) == []
    assert "2 records were passed over" in str(run.get_details()["warnings"])
    assert data(workspace, "runs", "delete", run.id)["removed"] == [run.id]
    for name in (str(victim), relative, f"../runs/../{relative}"):
        workspace.connection.call("runs.delete", run_ids=[name])
    assert (victim / "precious").read_text() == "mine"


def test_a_sweep_with_a_long_id_is_deleted(workspace: Workspace, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("from trainmaster import Run\nRun.get_context().log('loss', 1)\n")
    estimator = Estimator(str(source), compute_target="local", entry_script="train.py", user_managed=True)

    def sweep(run_id: str) -> Run:
        config = HyperDriveConfig(
            estimator=estimator,
            hyperparameter_sampling=RandomParameterSampling({"--x": uniform(0, 1)}),
            primary_metric_name="loss",
            primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
            max_total_runs=1,
            custom_run_id=run_id,
        )
        return Experiment(workspace, "long").submit(config)

    with pytest.raises(UserErrorException, match="cannot be a run id"):
        sweep("s" * 246)
    longest = sweep("s" * 230)
    assert ended(longest)["status"] == "Completed"
    done = data(workspace, "runs", "delete", longest.id)
    assert (done["removed"], done["children"], done["left"]) == ([longest.id], 1, [])
