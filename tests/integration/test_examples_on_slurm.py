"""The distributed examples on a real Slurm, with nothing but `compute_target` changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import stop_dispatcher
from tests.elsewhere import run_example

from trainmaster import Workspace
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.folders import WorkspaceFolder

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
    run = run_example(name, experiment, cluster, frameworks, framework_home, tmp_path)
    assert "slurm.job_id" in run.get_details()["properties"]
