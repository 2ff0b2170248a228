"""A workspace in a folder of this machine passes what every backend has to."""

from __future__ import annotations

import pytest
from tests.conftest import end_workspace

from trainmaster import Workspace
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.testing import BackendConformance, BackendPlace


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workspace = Workspace.create("local", path=tmp_path_factory.mktemp("local") / "ws", show_output=False)
    yield BackendPlace(workspace.backend, WorkspaceFolder(workspace.path))
    end_workspace(workspace.path)


class TestLocal(BackendConformance):
    pass
