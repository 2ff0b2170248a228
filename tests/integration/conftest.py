"""What the tests with a real dispatcher share: one workspace per file for those that do not disturb it, and gates."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.kubernetes import kubernetes_cluster, kubernetes_namespace
from tests.cluster.kubernetes_binaries import BUILD_SECONDS, binaries, build_meanwhile
from tests.conftest import PATIENCE, end_workspace, open_workspace
from tests.container_engine import container_engine, podman

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.run.run import Run

if TYPE_CHECKING:
    from tests.studio import Studio

__all__ = ["container_engine", "kubernetes_cluster", "kubernetes_namespace", "podman"]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before all tests of this folder: Kubernetes takes minutes to compile on a new machine, so it begins at once."""
    is_worker = hasattr(session.config, "workerinput")
    if not is_worker and any(Path(each).is_dir() for each in session.config.args):
        build_meanwhile()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test on Kubernetes may have to wait for the build."""
    if not (binaries() / "complete").exists():
        for item in items:
            if "kubernetes" in item.path.stem:
                item.add_marker(pytest.mark.timeout(BUILD_SECONDS + 600), append=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Workspace]:
    """One workspace for all tests of a file: starting a dispatcher is the costly part."""
    with open_workspace("shared", tmp_path_factory.mktemp("shared"), backend) as ws:
        yield ws


@pytest.fixture(scope="module")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """One server and one browser for all tests of a file. A file that prepares something has a fixture of this name."""
    from tests.studio import run_studio

    with run_studio(tmp_path_factory.mktemp("studio") / "root") as found:
        yield found


@pytest.fixture
def studio(studio_server: Studio) -> Iterator[Studio]:
    """The studio for one test, whose windows are closed after it."""
    yield studio_server
    studio_server.close_pages()


@pytest.fixture(scope="session")
def framework_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A `TRAINMASTER_HOME` for all files that train with frameworks: each environment is built once per session."""
    place = tmp_path_factory.mktemp("frameworks") / "home"
    yield place
    end_workspace(place / "workspaces" / "default")


@pytest.fixture(scope="session")
def frameworks(framework_home: Path) -> Workspace:
    """The workspace in there."""
    place = framework_home / "workspaces" / "default"
    return Workspace.create("default", path=place, exist_ok=True, show_output=False)


@pytest.fixture
def launch(shared: Workspace, project: Callable[..., Path]) -> Callable[..., Run]:
    """`submit`, to the shared workspace."""

    def send(script: str, *, experiment: str = "spine", workspace: Workspace = shared, **settings: Any) -> Run:
        settings.setdefault("user_managed", True)
        settings.setdefault("compute_target", "local")
        tags = settings.pop("tags", None)
        source = project(train=script)
        return Experiment(workspace, experiment).submit(
            Estimator(str(source), entry_script="train.py", **settings), tags=tags
        )

    return send


class Gate:
    """Where a script waits until the test lets it through: no clock decides."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrived = path.with_suffix(".arrived")
        os.mkfifo(path)
        os.mkfifo(self._arrived)

    @property
    def wait(self) -> str:
        """The line for the script: says that it has come, then waits."""
        return f"open({str(self._arrived)!r}, 'w').close(); open({str(self.path)!r}).read()"

    def await_arrival(self, seconds: float = PATIENCE) -> None:
        """Returns when the script is at the gate."""
        handle = os.open(self._arrived, os.O_RDONLY | os.O_NONBLOCK)
        try:
            poll = select.poll()
            poll.register(handle, select.POLLIN | select.POLLHUP)
            assert poll.poll(seconds * 1000), "the script did not come to the gate"
        finally:
            os.close(handle)

    def open(self) -> None:
        """Lets the script through."""
        os.close(os.open(self.path, os.O_WRONLY))


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], Gate]:
    """Makes gates."""
    return lambda name="gate": Gate(tmp_path / name)
