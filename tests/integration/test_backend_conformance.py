"""A workspace in a folder of this machine, and one on a server, pass what every backend has to."""

from __future__ import annotations

import pytest
from tests.conftest import end_workspace
from tests.server_process import ServerProcess

from trainmaster import Workspace
from trainmaster.sdk.backend.opening import RemotePlace, open_backend
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.testing import BackendConformance, BackendPlace


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    workspace = Workspace.create("local", path=tmp_path_factory.mktemp("local") / "ws", show_output=False)
    yield BackendPlace(workspace.backend, WorkspaceFolder(workspace.path))
    end_workspace(workspace.path)


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    root = tmp_path_factory.mktemp("remote")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_HOME", str(root / "home"))
        server = ServerProcess(root / "server")
        try:
            server.create_workspace("served")
            patch.setenv("TRAINMASTER_SERVER", server.url)
            patch.setenv("TRAINMASTER_TOKEN", server.token)
            backend = open_backend(RemotePlace(server.url, "served"))
            folder = WorkspaceFolder(root / "server" / "workspaces" / "served")
            yield BackendPlace(backend, folder, root / "home")
        finally:
            server.end()


class TestLocal(BackendConformance):
    @pytest.fixture
    def place(self, local: BackendPlace) -> BackendPlace:
        return local


class TestRemote(BackendConformance):
    @pytest.fixture
    def place(self, remote: BackendPlace) -> BackendPlace:
        return remote
