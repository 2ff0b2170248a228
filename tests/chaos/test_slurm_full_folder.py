"""The shared folder of a Slurm cluster is full, as a small tmpfs: clear errors, and all is well once there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import end_workspace, ended, until
from tests.left_out import require_root
from trainmaster import ComputeTarget, Estimator, Experiment, Workspace
from trainmaster.sdk.compute.slurm import SlurmCompute

FILLS = "with open('outputs/big', 'wb') as file:\n    while True:\n        file.write(b'0' * 65536)\n"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    require_root("to mount a small file system")
    place = tmp_path / "shared"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def small(tmp_path: Path, shared: Path) -> Iterator[Workspace]:
    with MiniSlurm(tmp_path / "cluster", nodes=2) as slurm, variables(slurm):
        ws = Workspace.create("small", path=shared / "ws", show_output=False)
        ComputeTarget.create(ws, "cluster", SlurmCompute.configuration(max_nodes=2, shared_folder=str(shared)))
        yield ws
        end_workspace(ws.path)


def test_a_script_that_fills_the_shared_folder(small: Workspace, project: object) -> None:
    run = _submit(small, project, FILLS)
    until(lambda: _settled(small, run.id), what="the run's end, or a run that waits for room")
    next(small.path.glob(f"runs/{run.id}/*/outputs/big")).unlink()
    details = ended(run)
    assert details["status"] == "Failed"
    assert "no space left on device" in details["error"]["message"].lower()
    assert ended(_submit(small, project, "print('fine')"))["status"] == "Completed"


def _submit(workspace: Workspace, project: object, script: str):
    source = project(train=script)
    estimator = Estimator(str(source), entry_script="train.py", compute_target="cluster", user_managed=True)
    return Experiment(workspace, "full").submit(estimator)


def _settled(workspace: Workspace, run_id: str) -> bool:
    record = workspace.connection.call("runs.get", run_id=run_id)
    return record["status"] in ("Failed", "Completed") or "waiting to write" in record["waiting_for"]
