"""The distributed examples on machines that do not see this one's files: a Slurm behind a login node, and two hosts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.hosts import REPOSITORY, Hosts
from tests.cluster.login import LoginNode, View
from tests.cluster.slurm import MiniSlurm
from tests.elsewhere import run_example

from trainmaster import Workspace
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.ssh import SshCompute
from trainmaster.sdk.compute.target import ComputeTarget

# Frameworks are installed, on a new machine Horovod is compiled, and all of it travels.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def behind_login(
    tmp_path_factory: pytest.TempPathFactory, frameworks: Workspace, framework_home: Path
) -> Iterator[str]:
    there = tmp_path_factory.mktemp("there")
    with (
        View(there / "view", hidden=[framework_home, REPOSITORY]) as view,
        MiniSlurm(there / "cluster", nodes=2, inside=view.words) as slurm,
        LoginNode(there / "login", view, {name: slurm.environment[name] for name in ("SLURM_CONF", "PATH")}) as login,
    ):
        known = {"login": "login", "config_file": login.ssh_config, "shared_folder": str(there / "shared")}
        ComputeTarget.create(frameworks, "behind-login", SlurmCompute.configuration(max_nodes=2, **known))
        yield "behind-login"


@pytest.fixture(scope="module")
def pair(tmp_path_factory, frameworks: Workspace) -> Iterator[str]:
    with Hosts(tmp_path_factory.mktemp("pair") / "hosts", 2) as hosts:
        names = [host.name for host in hosts]
        ComputeTarget.create(frameworks, "pair", SshCompute.configuration(names, config_file=hosts.ssh_config))
        yield "pair"


# mpi and pytorch-ddp run in both places, too; each environment that travels takes its minute.
@pytest.mark.parametrize(
    ("kind", "name", "experiment"),
    [
        ("behind_login", "pytorch-horovod", "digits-horovod"),
        ("pair", "tensorflow-parameter-server", "digits-parameter-server"),
    ],
)
def test_example(kind, name, experiment, request, frameworks, framework_home, tmp_path):
    run_example(name, experiment, request.getfixturevalue(kind), frameworks, framework_home, tmp_path)
