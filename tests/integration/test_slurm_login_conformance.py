"""The conformance suite of engines, on a real Slurm that is used through its login node over SSH."""

from __future__ import annotations

import pytest
from tests.cluster.hosts import REPOSITORY
from tests.cluster.login import LoginNode, View
from tests.cluster.slurm import MiniSlurm
from tests.conftest import end_workspace
from tests.integration.test_slurm_conformance import machine_is_off, machines_are_on

from trainmaster import Workspace
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.testing import EngineConformance, EnginePlace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory):
    laptop, there = tmp_path_factory.mktemp("laptop"), tmp_path_factory.mktemp("there")
    with (
        View(there / "view", hidden=[laptop, REPOSITORY]) as view,
        MiniSlurm(there / "cluster", nodes=2, inside=view.words) as slurm,
        LoginNode(there / "login", view, {"SLURM_CONF": slurm.environment["SLURM_CONF"]}) as login,
    ):
        workspace = Workspace.create("laptop", path=laptop / "workspace", show_output=False)
        configuration = SlurmCompute.configuration(
            max_nodes=2, login="login", config_file=login.ssh_config, shared_folder=str(there / "shared")
        )
        ComputeTarget.create(workspace, "cluster", configuration)
        yield EnginePlace(
            workspace,
            "cluster",
            lose=lambda run, number: machine_is_off(slurm, run, number),
            restore=lambda run: machines_are_on(slurm, run),
            left=lambda run: list(map(str, processes_of(run.id))),
        )
        end_workspace(workspace.path)


class TestSlurmThroughLogin(EngineConformance):
    pass
