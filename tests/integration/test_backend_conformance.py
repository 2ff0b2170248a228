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


def test_a_snapshot_that_the_server_has_lost_is_sent_again(remote: BackendPlace, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("print('only here')\n")
    taken = remote.backend.contents.take_snapshot(source)
    remote.folder.snapshot(taken.id).unlink()
    lost = [path for path in remote.folder.blobs.glob("*/*") if path.read_bytes() == b"print('only here')\n"]
    lost[0].unlink()
    assert remote.backend.contents.take_snapshot(source) == taken
    assert lost[0].read_bytes() == b"print('only here')\n"
    remote.backend.contents.write_archive(taken.id, tmp_path / "again.zip")
