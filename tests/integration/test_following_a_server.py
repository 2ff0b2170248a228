"""A program follows a run on a server that is killed meanwhile: it shows everything, and everything once."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import until
from tests.server_process import ServerProcess

from trainmaster import Environment, Estimator, Experiment, Run, Workspace
from trainmaster.notebook.widgets.watching import watch_run

SCRIPT = """
import os, sys, time
from trainmaster import Run
run = Run.get_context()
for part in range(2):
    while not os.path.exists(os.path.join(sys.argv[1], str(part))):
        time.sleep(0.01)
    for number in range(1000):
        print("line", part, number, "ö" * 20)
    run.log("part", part)
    print("end of part", part, flush=True)
"""
LINES = [
    line
    for part in range(2)
    for line in (*(f"line {part} {number} {'ö' * 20}" for number in range(1000)), f"end of part {part}")
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("killed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINMASTER_HOME", str(root / "home"))
        server = ServerProcess(root / "server")
    yield server
    server.end()


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return iter([f"followed-{number}" for number in range(10)])


@pytest.fixture
def run(server: ServerProcess, names: Iterator[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A run that prints its first part when the file `0` exists, and so on."""
    monkeypatch.setenv("TRAINMASTER_SERVER", server.url)
    monkeypatch.setenv("TRAINMASTER_TOKEN", server.token)
    workspace = Workspace.create("followed", server=server.url, show_output=False, exist_ok=True)
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text(SCRIPT)
    environment = Environment("here")
    environment.python.user_managed_dependencies = True
    environment.python.interpreter_path = sys.executable
    estimator = Estimator(
        str(source),
        entry_script="train.py",
        script_params={str(tmp_path): ""},
        compute_target="local",
        environment_definition=environment,
    )
    yield Experiment(workspace, next(names)).submit(estimator)
    workspace.connection.close()


class Screen(io.StringIO):
    """Standard output. When the end of a part is shown, the server is killed and another one started."""

    def __init__(self, server: ServerProcess, start_part: Callable[[int], None]) -> None:
        super().__init__()
        self._server = server
        self._start_part = start_part
        self._part = 0
        self.starting: list[threading.Thread] = []

    def write(self, text: str) -> int:
        written = super().write(text)
        if f"end of part {self._part}\n" in self.getvalue():
            self._part += 1
            self._server.kill()
            self.starting.append(threading.Thread(target=self._restart))
            self.starting[-1].start()
        return written

    def _restart(self) -> None:
        self._start_part(self._part)
        self._server.start()

    def lines(self) -> list[str]:
        for thread in self.starting:
            thread.join()
        return [line for line in self.getvalue().splitlines() if line.startswith(("line", "end"))]


@pytest.fixture
def screen(server: ServerProcess, tmp_path: Path) -> Screen:
    def start_part(part: int) -> None:
        (tmp_path / str(part)).touch()

    start_part(0)
    return Screen(server, start_part)


def test_wait_for_completion(run: Run, screen: Screen) -> None:
    with contextlib.redirect_stdout(screen):
        run.wait_for_completion(show_output=True)
    assert screen.lines() == LINES
    assert run.get_metrics() == {"part": [0, 1]}


def test_the_live_view(run: Run, server: ServerProcess, tmp_path: Path) -> None:
    """It is updated when something is logged, also after another server has started."""
    seen: list[list[int]] = []
    for _ in watch_run(run):
        found = run.get_metrics().get("part", [])
        found = found if isinstance(found, list) else [found]
        if len(found) == len(seen) and len(seen) < 2:
            if seen:
                server.kill()
                server.start()
            seen.append(found)
            (tmp_path / str(len(found))).touch()
    assert seen == [[], [0]]
    assert run.get_metrics() == {"part": [0, 1]}
    until(lambda: run.get_status() == "Completed")
