"""Hosts over SSH as an engine: they pass what every engine has to."""

from __future__ import annotations

import pytest
from tests.cluster.hosts import Hosts
from tests.conftest import end_workspace

from trainmaster import ComputeTarget, SshCompute, Workspace
from trainmaster.testing import EngineConformance, EnginePlace


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with Hosts(tmp_path_factory.mktemp("cluster") / "hosts", 2) as made:
        yield made


@pytest.fixture(scope="module")
def place(tmp_path_factory, hosts):
    workspace = Workspace.create("over-ssh", path=tmp_path_factory.mktemp("ssh") / "ws", show_output=False)
    configuration = SshCompute.configuration(
        [host.name for host in hosts], config_file=hosts.ssh_config, lost_after_seconds=15
    )
    ComputeTarget.create(workspace, "pair", configuration)
    lost = []

    def lose(run, number):
        lost.append(hosts[number])
        hosts[number].kill()

    def restore(run):
        for host in lost:
            host.boot()
        lost.clear()

    def left(run):
        return [command for host in hosts for command in host.processes(run.id)]

    yield EnginePlace(workspace, "pair", lose=lose, restore=restore, left=left)
    end_workspace(workspace.path)


class TestSsh(EngineConformance):
    pass
