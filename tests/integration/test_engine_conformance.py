"""This machine as an engine: it passes what every engine has to."""

from __future__ import annotations

import os
import signal

import pytest
from tests.conftest import end_workspace

from trainmaster import ComputeTarget, LocalCompute, Workspace
from trainmaster.engines.plans import read_claim
from trainmaster.job.agent.tree import processes_of
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.testing import EngineConformance, EnginePlace


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workspace = Workspace.create("local", path=tmp_path_factory.mktemp("local") / "ws", show_output=False)
    ComputeTarget.create(workspace, "pair", LocalCompute.configuration(nodes=2))
    folder = WorkspaceFolder(workspace.path)

    def lose(run, number):
        os.kill(read_claim(folder.run(run.id).node(number))["pid"], signal.SIGKILL)

    yield EnginePlace(workspace, "pair", lose=lose, left=lambda run: list(map(str, processes_of(run.id))))
    end_workspace(workspace.path)


class TestLocal(EngineConformance):
    pass
