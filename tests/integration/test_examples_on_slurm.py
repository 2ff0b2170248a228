"""The distributed examples on a real Slurm, with nothing but `compute_target` changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import stop_dispatcher

from trainmaster import Experiment, Workspace
from trainmaster.compute import ComputeTarget, SlurmCompute
from trainmaster.folders import WorkspaceFolder

EXAMPLES = Path(__file__).parents[2] / "examples"

# Frameworks are installed, and on a new machine Horovod is compiled.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, frameworks: Workspace) -> Iterator[str]:
    """The name of a target; the dispatcher of the workspace that has the environments finds the cluster."""
    folder = WorkspaceFolder(frameworks.path)
    with MiniSlurm(tmp_path_factory.mktemp("slurm") / "cluster", nodes=2) as slurm, variables(slurm):
        stop_dispatcher(folder)
        shared = str(frameworks.path.parent)
        ComputeTarget.create(frameworks, "cluster", SlurmCompute.configuration(max_nodes=2, shared_folder=shared))
        yield "cluster"
        stop_dispatcher(folder)


@pytest.mark.parametrize(
    ("name", "experiment"),
    [
        ("mpi", "digits-mpi"),
        ("pytorch-horovod", "digits-horovod"),
        ("pytorch-ddp", "digits-ddp"),
        ("tensorflow-parameter-server", "digits-parameter-server"),
    ],
)
def test_example(cluster, frameworks, framework_home, tmp_path, name, experiment):
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    program = folder / "submit.py"
    text = program.read_text()
    changed = text.replace('compute_target="local"', f'compute_target="{cluster}"')
    assert changed != text
    program.write_text(changed)
    environment = {**os.environ, "TRAINMASTER_HOME": str(framework_home)}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = next(Experiment(frameworks, experiment).get_runs())
    details = run.get_details()
    assert details["status"] == "Completed", details.get("error")
    assert details["target"] == cluster
    assert "slurm.job_id" in details["properties"]
    metrics = run.get_metrics()
    if "steps" in metrics:
        # Workers of a parameter server do not wait for each other: one may find that the other has learned it all.
        assert metrics["steps"] == 800 and metrics["accuracy"] > 0.7
    elif "loss" in metrics:
        assert metrics["loss"][-1] < metrics["loss"][0] / 2
