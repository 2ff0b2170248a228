"""The examples as a newcomer runs them: each by its own program, in one workspace, with a look at what it left."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import run_folder

from trainmaster import Experiment, HyperDriveRun, Workspace
from trainmaster.cli.sweep_file import read_sweep_file
from trainmaster.environments.pythons import all_pythons
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run
from trainmaster.shared.records import Status
from trainmaster.tuning.view import SweepView

EXAMPLES = Path(__file__).parents[2] / "examples"

# Frameworks are installed, and on a new machine Horovod is compiled.
pytestmark = pytest.mark.timeout(1800)


@dataclass(frozen=True)
class Example:
    """What a folder of the examples does."""

    name: str
    experiment: str
    output: str
    logs: int = 1
    python: str = ""
    answer: str = ""
    """What the service of its model says, for those that end with one."""


ALL = [
    Example("mpi", "digits-mpi", "outputs/network.npz", logs=2),
    Example("pytorch", "demo", "outputs/network.pt", answer="on arms [0, 1]"),
    Example("pytorch-ddp", "digits-ddp", "outputs/network.pt", logs=2),
    Example("pytorch-horovod", "digits-horovod", "outputs/network.pt", logs=2, answer="shows a 7"),
    Example("tensorflow", "digits-tensorflow", "outputs/model.keras", answer="shows a 7"),
    Example("tensorflow-horovod", "digits-tensorflow-horovod", "outputs/model.weights.h5", logs=2, answer="shows a 7"),
    Example("tensorflow-parameter-server", "digits-parameter-server", "outputs/network.npz", logs=3),
    Example("sklearn", "iris", "outputs/model.joblib", answer="are [0, 2]"),
    Example("pytorch-1.4", "line", "outputs/line.pt", python="3.7"),
]
SWEEPS = [
    # The same environments as those above, which are built once.
    Example("sweep-sklearn", "digits-grid", "outputs/model.joblib"),
    Example("sweep-pytorch", "spiral-sweep", "outputs/network.pt"),
    Example("sweep-tensorflow", "digits-bayesian", "outputs/model.keras"),
]

# They are run in test_torch_libraries.py, which takes a node away from them.
ELASTIC = ("accelerate", "deepspeed", "pytorch-fsdp")


@pytest.fixture
def submitted(framework_home: Path, frameworks: Workspace) -> Callable[..., Run]:
    """Runs a program that submits; returns its run, which has ended by then."""

    def run(*command: str, cwd: Path, experiment: str) -> Run:
        environment = {**os.environ, "TRAINMASTER_HOME": str(framework_home)}
        done = subprocess.run(
            [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return next(Experiment(frameworks, experiment).get_runs())

    return run


def deployed(program: Path, home: Path, cwd: Path) -> str:
    """Runs a program that registers, deploys and asks; what it printed."""
    environment = {**os.environ, "TRAINMASTER_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def learned(run: Run) -> dict[str, Any]:
    """The metrics of a run that ended well, left no process, and whose loss fell.

    The workers of a parameter server do not wait for each other: one may find that the other has learned it all.
    """
    details = run.get_details()
    assert details["status"] == "Completed", details.get("error")
    assert processes_of(run.id) == []
    metrics = run.get_metrics()
    if "loss" in metrics and "steps" not in metrics:
        assert metrics["loss"][-1] < metrics["loss"][0] / 2, metrics["loss"]
    return metrics


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(
            each,
            id=each.name,
            marks=pytest.mark.skipif(
                each.python not in ("", *all_pythons()), reason=f"there is no Python {each.python} on this machine"
            ),
        )
        for each in ALL
    ],
)
def test_example(submitted, framework_home, frameworks, tmp_path, example):
    run = submitted(str(EXAMPLES / example.name / "submit.py"), cwd=tmp_path, experiment=example.experiment)
    metrics = learned(run)
    if "accuracy" in metrics:
        assert max(metrics["accuracy"] if isinstance(metrics["accuracy"], list) else [metrics["accuracy"]]) > 0.7
    files = run.get_file_names()
    assert example.output in files
    assert len([name for name in files if name.startswith("azureml-logs/70_driver_log")]) == example.logs
    if example.name == "tensorflow-parameter-server":
        # Both workers stepped on the one set of weights.
        assert metrics["steps"] == 800
    if example.answer:
        # The story ends with a model in ONNX that answers over HTTP.
        assert example.answer in deployed(EXAMPLES / example.name / "deploy.py", framework_home, tmp_path)
        assert frameworks.webservices == {}
    # Nothing is left where the program was started.
    assert {path.name for path in tmp_path.iterdir()} <= {"home"}


@pytest.mark.parametrize("example", SWEEPS, ids=[each.name for each in SWEEPS])
def test_sweep(submitted, tmp_path, example):
    run = submitted(str(EXAMPLES / example.name / "submit.py"), cwd=tmp_path, experiment=example.experiment)
    assert isinstance(run, HyperDriveRun)
    assert run.get_status() == "Completed", run.get_details().get("error")
    view = run.get_view()
    assert len(view.trials) == view.total and processes_of(run.id) == []
    assert {trial.status for trial in view.trials} <= {Status.COMPLETED, Status.CANCELED}
    best = run.get_best_run_by_primary_metric()
    assert best is not None and example.output in best.get_file_names()
    FOUND[example.name](view, Path(run_folder(run).logs / "hyperdrive.txt").read_text())
    assert {path.name for path in tmp_path.iterdir()} <= {"home"}


def _grid_has_every_point_once(view: SweepView, log: str) -> None:
    points = {(trial.parameters["--kernel"], trial.parameters["--penalty"]) for trial in view.trials}
    assert points == {(kernel, penalty) for kernel in ("linear", "rbf") for penalty in (0.01, 1.0, 10.0)}
    assert len(view.trials) == 6 and view.best.parameters == {"--kernel": "rbf", "--penalty": 10.0}


def _a_good_rate_wins_and_the_bandit_spoke(view: SweepView, log: str) -> None:
    assert view.best.best > 0.95 and 0.001 < view.best.parameters["--lr"] < 0.1
    assert re.search(r"interval 10: run_\d best [\d.]+ (<|>=) [\d.]+/\(1\+0.2\) = [\d.]+: (cancelled|goes on)", log)
    # Whoever was cut was behind then; until its end it may have come further.
    for trial in view.trials:
        if trial.cut_interval is not None:
            found = re.search(r"best ([\d.]+) < ([\d.]+)/", trial.cut_reason)
            assert found is not None, trial.cut_reason
            assert float(found[1]) < float(found[2]) / 1.2 and float(found[2]) < view.best.best + 0.001


def _a_good_rate_is_found(view: SweepView, log: str) -> None:
    assert view.sampling == "bayesian (tpe)" and view.best.best > 0.8
    assert view.best.parameters["--lr"] > 0.002


FOUND = {
    "sweep-sklearn": _grid_has_every_point_once,
    "sweep-pytorch": _a_good_rate_wins_and_the_bandit_spoke,
    "sweep-tensorflow": _a_good_rate_is_found,
}


def test_the_sweep_of_the_file_is_that_of_the_program():
    spec = read_sweep_file(EXAMPLES / "sweep-sklearn" / "sweep.yaml").config.compile({})
    assert spec.sampling.kind == "grid" and list(spec.space) == ["--kernel", "--penalty"]
    assert (spec.metric, spec.max_total_runs, spec.job.script) == ("accuracy", 100, "train.py")


def test_the_notebook(submitted, tmp_path):
    """Cell after cell, as one program; what a notebook would show of a cell's last line is not looked at."""
    folder = tmp_path / "pytorch-ddp"
    shutil.copytree(EXAMPLES / "pytorch-ddp", folder)
    cells = json.loads((folder / "submit.ipynb").read_text())["cells"]
    program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (folder / "cells.py").write_text(program)
    run = submitted("cells.py", cwd=folder, experiment="digits-ddp")
    metrics = learned(run)
    # Both ranks logged each epoch.
    assert len(metrics["loss on my part"]) == 2 * len(metrics["loss"])
    assert (folder / "network.pt").stat().st_size > 0


def test_every_example_is_here_and_in_the_index():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert {*(each.name for each in (*ALL, *SWEEPS)), *ELASTIC} == folders
    index = (EXAMPLES / "README.md").read_text()
    assert [name for name in folders if f"[{name}]({name})" not in index] == []
    assert [name for name in folders if not (EXAMPLES / name / "README.md").exists()] == []


def test_every_deploy_program_is_tried():
    assert {path.parent.name for path in EXAMPLES.glob("*/deploy.py")} == {each.name for each in ALL if each.answer}


def test_the_examples_learn_the_same_digits():
    """Each project is complete in itself, so that the file is there several times."""
    copies = {path.read_text() for path in EXAMPLES.glob("*/project/digits.py")}
    assert len(copies) == 1


def test_the_notebook_is_kept_without_output():
    cells = json.loads((EXAMPLES / "pytorch-ddp" / "submit.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    for cell in code:
        ast.parse("".join(cell["source"]))
