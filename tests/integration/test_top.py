"""`trainmaster top`: the state of a workspace once, as JSON, and live on a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conftest import PATIENCE, ended, until

from trainmaster.sdk.run.run import Run

BACKENDS = ("local", "server")

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("notebook_folder")]

LEAVE = b"\x1b[?25h\x1b[?1049l"


@pytest.fixture
def busy(launch: Callable[..., Run], gate: Callable[..., Any]) -> Iterator[Run]:
    """A run that was measured and goes on."""
    here = gate("here")
    run = launch(here.wait, environment_variables={"TRAINMASTER_SYSTEM_METRICS": "0.2"})
    here.await_arrival()
    until(lambda: run.get_system_metrics(), what="a measurement")
    yield run
    here.open()
    ended(run)


def command(run: Run, *options: str) -> list[str]:
    workspace = run.experiment.workspace
    place = workspace.backend.as_config().get("path", workspace.name)
    return [sys.executable, "-m", "trainmaster.cli", "top", "--workspace", place, *options]


def test_once_and_as_json(busy: Run) -> None:
    shown = subprocess.run(command(busy, "--once"), capture_output=True, text=True, check=True).stdout
    assert busy.id in shown
    assert "local" in shown
    assert "\x1b" not in shown
    found = json.loads(subprocess.run(command(busy, "--json"), capture_output=True, text=True, check=True).stdout)
    (run,) = [each for each in found["runs"] if each["id"] == busy.id]
    assert run["status"] == "Running"
    assert run["ranks"][0]["memory_gb"] > 0
    assert run["nodes"][0]["node"] == 0
    assert run["use"]["processes"] == 1
    (local,) = [each for each in found["targets"] if each["name"] == "local"]
    assert local["busy"] >= 1
    assert found["machine"]["cpus"] >= 1


class Screen:
    """A program on a terminal of its own."""

    def __init__(self, arguments: list[str], columns: int, lines: int) -> None:
        self._main, self.side = pty.openpty()
        self.resize(columns, lines)
        self.modes = termios.tcgetattr(self.side)
        variables = {**os.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(
            arguments, stdin=self.side, stdout=self.side, stderr=self.side, env=variables, start_new_session=True
        )
        self.text = b""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, word: bytes, after: int = 0) -> None:
        """Until the program has written this, behind the first `after` bytes."""
        deadline = time.monotonic() + PATIENCE
        while word not in self.text[after:]:
            assert time.monotonic() < deadline, self.text[-2000:]
            if select.select([self._main], [], [], 1.0)[0]:
                self.text += os.read(self._main, 65536)

    def press(self, keys: bytes) -> None:
        os.write(self._main, keys)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)
        os.close(self.side)


@pytest.fixture
def screen(busy: Run) -> Iterator[Screen]:
    found = Screen(command(busy, "--every", "0.5"), 80, 24)
    yield found
    found.close()


@pytest.mark.local_only("the terminal is the same")
@pytest.mark.parametrize("end", ["q", "Ctrl-C", "SIGTERM"])
def test_live_on_a_terminal(busy: Run, screen: Screen, end: str) -> None:
    screen.wait_for(b"STATE")
    assert b"\x1b[?1049h" in screen.text
    assert b"WRITE MB/s" not in screen.text
    seen = len(screen.text)
    screen.resize(160, 50)
    screen.process.send_signal(signal.SIGWINCH)
    screen.wait_for(b"WRITE MB/s", after=seen)
    if end == "SIGTERM":
        screen.process.send_signal(signal.SIGTERM)
    elif end == "q":
        screen.press(b"\x1b[B\x1b[Bq")
    else:
        # The terminal is not the controlling one, so it sends no signal for the key.
        screen.process.send_signal(signal.SIGINT)
    screen.wait_for(LEAVE)
    assert screen.process.wait(PATIENCE) == 0
    assert termios.tcgetattr(screen.side) == screen.modes
    assert b"Traceback" not in screen.text
