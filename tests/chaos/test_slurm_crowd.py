"""Two hundred runs at once on a real Slurm of four nodes, while dispatchers are killed: all end, each ran once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import dispatcher_handle, ended, until, wait_gone
from trainmaster import ComputeTarget, Estimator, Experiment, Workspace
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.shared.folders import WorkspaceFolder

RUNS = 200
CANCELED = 20
SCRIPT = """
import os, sys
with open(sys.argv[1], "a") as file:
    file.write(os.environ["TRAINMASTER_RUN_ID"] + "\\n")
"""


@pytest.fixture
def slurm(tmp_path: Path):
    with MiniSlurm(tmp_path / "cluster", nodes=4) as cluster, variables(cluster):
        yield cluster


@pytest.mark.timeout(1800)
def test_two_hundred_runs_at_once(slurm, workspace: Workspace, project, tmp_path: Path) -> None:
    ComputeTarget.create(workspace, "cluster", SlurmCompute.configuration(max_nodes=4, cpus_per_node=1))
    source, proof = project(train=SCRIPT), tmp_path / "proof"
    proof.touch()
    estimator = Estimator(
        str(source),
        entry_script="train.py",
        script_params={str(proof): ""},
        compute_target="cluster",
        user_managed=True,
    )
    runs = []
    for number in range(RUNS):
        runs.append(Experiment(workspace, "crowd").submit(estimator))
        if number in (RUNS // 4, RUNS // 2, 3 * RUNS // 4):
            kill_dispatcher(workspace)
    canceled = runs[-CANCELED:]
    for run in canceled:
        run.cancel()
    states = {run.id: ended(run)["status"] for run in runs}

    ran = proof.read_text().split()
    assert len(ran) == len(set(ran)), "a run ran twice"
    assert {run.id for run in runs[:-CANCELED]} <= set(ran)
    assert {state for run, state in states.items() if run not in {each.id for each in canceled}} == {"Completed"}
    assert {states[run.id] for run in canceled} <= {"Canceled", "Completed"}
    until(lambda: not slurm.jobs(), what="the end of all jobs")


def kill_dispatcher(workspace: Workspace) -> None:
    folder = WorkspaceFolder(workspace.path)
    handle = dispatcher_handle(folder)
    assert handle is not None
    os.kill(int(folder.lock.read_text()), signal.SIGKILL)
    wait_gone(handle)
