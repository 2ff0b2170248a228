"""A workspace of its own for every test that wants one; its dispatcher is ended with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.backends import backend as backend
from tests.backends import folder_of, new_name
from tests.backends import pytest_generate_tests as pytest_generate_tests
from tests.backends import team_server as team_server
from tests.left_out import pytest_runtest_makereport as pytest_runtest_makereport
from tests.left_out import pytest_terminal_summary as pytest_terminal_summary
from tests.parallel import WholeFiles, turn
from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.run.run import Run
from trainmaster.shared.dispatcher_socket import try_line
from trainmaster.shared.folders import RunFolder, WorkspaceFolder

# How long anything may take that is sure to come: only a test that fails waits so long.
PATIENCE = 120.0

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell script. What is tested is interrupted as from a terminal.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes tells how busy the machine is.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles:
    config.option.loadscopereorder = False
    return WholeFiles(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In turn; the tests of a file keep their order."""
    items.sort(key=lambda item: turn(item.path.stem))


@pytest.fixture(autouse=True, scope="session")
def home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For workspaces that several tests share, which are made before `home` of the first of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the workspaces of the person who runs it, nor the server of other tests of its file."""
    place = tmp_path / "home"
    monkeypatch.setenv("TRAINMASTER_HOME", str(place))
    if getattr(request.module, "BACKENDS", ()) and "backend" not in request.fixturenames:
        for name in ("TRAINMASTER_SERVER", "TRAINMASTER_TOKEN", "TRAINMASTER_CACHE"):
            monkeypatch.delenv(name, raising=False)
    return place


DATABASE = os.environ.get("TRAINMASTER_TESTS_DATABASE")
"""The URL of a PostgreSQL database: then workspaces are there (`test_postgresql.py`)."""


@pytest.fixture
def workspace(tmp_path: Path, backend: Any) -> Iterator[Workspace]:
    with open_workspace("tested", tmp_path, backend) as ws:
        yield ws


@contextlib.contextmanager
def open_workspace(name: str, place: Path, server: Any) -> Iterator[Workspace]:
    """A new workspace in a folder of `place`, or on a server."""
    if server is None:
        ws = Workspace.create(name, path=place / "workspace", show_output=False, database=DATABASE)
    else:
        ws = Workspace.create(new_name(name), show_output=False, server=server.url)
    yield ws
    ws.connection.close()
    end_workspace(folder_of(ws))


def end_workspace(path: Path) -> None:
    """Cancels what still runs and ends the dispatcher; returns when it is gone."""
    folder = WorkspaceFolder(path)
    if not folder.database.exists() and not folder.database_address.exists():
        return
    with contextlib.suppress(Exception):
        ws = Workspace(path=path)
        for run in ws.connection.call("status")["active"]:
            ws.connection.call("runs.cancel", run_id=run["id"])
            if run["spec"]:
                with ws.connection.watch(run["id"]) as watch:
                    while not watch.next()["ended"]:
                        pass
        for service in ws.connection.call("services.list"):
            ws.connection.call("services.delete", name=service["name"])
        ws.connection.close()
    stop_dispatcher(folder)


def overwrite(path: Path, content: bytes) -> None:
    """Changes a file that is kept read-only, as somebody who damages it would."""
    path.chmod(0o600)
    path.write_bytes(content)


def stop_dispatcher(folder: WorkspaceFolder) -> None:
    line = try_line(folder)
    if line is None:
        return
    handle = dispatcher_handle(folder)
    with contextlib.suppress(ConnectionError, EOFError):
        line.send({"id": 1, "op": "shutdown", "args": {}})
        line.receive()
    line.close()
    if handle is not None:
        wait_gone(handle)


def dispatcher_handle(folder: WorkspaceFolder) -> int | None:
    """A pidfd of the living dispatcher."""
    with contextlib.suppress(OSError, ValueError):
        return os.pidfd_open(int(folder.lock.read_text()))
    return None


def wait_gone(handle: int, seconds: float = PATIENCE) -> None:
    import select

    try:
        assert select.select([handle], [], [], seconds)[0], "a process did not end in time"
    finally:
        os.close(handle)


@pytest.fixture
def notebook_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder of the test's own: `start_logging` creates ./outputs and ./logs."""
    place = tmp_path / "current"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Makes a source folder from file names and contents."""

    def make(folder: str = "project", **files: str) -> Path:
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        for name, text in files.items():
            (place / f"{name}.py").write_text(text)
        return place

    return make


@pytest.fixture
def submit(workspace: Workspace, project: Callable[..., Path]) -> Callable[..., Run]:
    """Submits a script given as text, in this Python."""

    def send(script: str, *, experiment: str = "spine", **settings: Any) -> Run:
        settings.setdefault("user_managed", True)
        settings.setdefault("compute_target", "local")
        tags = settings.pop("tags", None)
        source = project(train=script)
        return Experiment(workspace, experiment).submit(
            Estimator(str(source), entry_script="train.py", **settings), tags=tags
        )

    return send


def until(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "it") -> Any:
    """Waits for a condition that nothing tells us about, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.005)
    return found


def files_below(place: Path) -> Iterator[Path]:
    """All files of a folder in which others may be at work: what goes away meanwhile is left out."""
    for folder, _, names in os.walk(place):
        yield from (path for name in names if (path := Path(folder, name)).is_file())


def contents(path: Path) -> bytes:
    """What a file holds; nothing if it has just gone away."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


def run_folder(run: Run) -> RunFolder:
    """The folder of a run, in a workspace of this machine."""
    return run.experiment.workspace.backend.folder.run(run.id)


def wait_awake(run: Run, condition: Callable[[], Any], what: str) -> None:
    """`until`, for a run with `hang_seconds`: until then it is not taken for silent, however slowly it starts."""
    journals = run_folder(run).path / "journals"

    def touched() -> Any:
        with contextlib.suppress(FileNotFoundError):
            (journals / "awake.jsonl").touch()
        return condition()

    journals.mkdir(parents=True, exist_ok=True)
    until(touched, what=what)


def ended(run: Run) -> dict[str, Any]:
    return run.wait_for_completion(raise_on_error=False)
