"""Sweeps from the command line as a person uses it: real processes, a workspace of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends import new_name
from tests.conftest import end_workspace, until
from tests.integration.conftest import Gate

from trainmaster import Experiment, HyperDriveRun, Workspace

COMMAND = [sys.executable, "-m", "trainmaster.cli"]
TRAIN = """\
import argparse
from trainmaster import Run

BACKENDS = ("local", "server")
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--kind", default="")
parser.add_argument("--metric", default="accuracy")
options = parser.parse_args()
{wait}
run = Run.get_context()
for epoch in range(3):
    run.log(options.metric, (1 - abs(options.lr - 0.3)) * (epoch + 1) / 3)
if options.kind == "bad":
    raise ValueError("no luck")
"""
SWEEP = """\
job: {script: train.py, user_managed: true}
space:
  --lr: [0.1, 0.3, 0.5]
  --kind: [good, bad]
sampling: grid
metric: accuracy
goal: maximize
max_total_runs: 10
max_concurrent_runs: 2
"""


class Shell:
    """Runs commands in a folder, with a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.variables = {**os.environ, "TRAINMASTER_HOME": str(self.home), "TERM": "xterm-256color"}
        self.write("project")

    def write(self, project: str, train: str = TRAIN.format(wait=""), sweep: str = SWEEP) -> str:
        """A project with its sweep.yaml, whose path is returned."""
        place = self.folder / project
        place.mkdir(exist_ok=True)
        (place / "train.py").write_text(train)
        (place / "sweep.yaml").write_text(sweep)
        return str(place / "sweep.yaml")

    def __call__(self, *argv: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *argv], cwd=self.folder, env=self.variables, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr and "\x1b" not in done.stdout + done.stderr
        return done

    def data(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self(*argv, "--json", code=code).stdout)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory, backend: Any) -> Iterator[Shell]:
    made = Shell(tmp_path_factory.mktemp("sweeps"))
    if backend is not None:
        made.variables["TRAINMASTER_WORKSPACE"] = name = new_name("sweeps")
        backend.create_workspace(name)
        yield made
        end_workspace(backend.root / "workspaces" / name)
        return
    yield made
    for identity in made.home.glob("workspaces/*/workspace.json"):
        end_workspace(identity.parent)


@pytest.fixture(scope="module")
def followed(shell: Shell) -> subprocess.CompletedProcess[str]:
    """What a person sees without a terminal, of a sweep over six points of which three fail."""
    return shell("sweep", "submit", "project/sweep.yaml", "--follow")


def test_each_end_is_told_once_and_the_table_at_last(followed: subprocess.CompletedProcess[str]) -> None:
    lines = followed.stdout.splitlines()
    ends = [line for line in lines if re.match(r"\[\d/6\] run_\d (Completed|Failed)", line)]
    assert [line.split()[0] for line in ends] == [f"[{n}/6]" for n in range(1, 7)]
    assert sorted(line.split()[1] for line in ends) == [f"run_{n}" for n in range(6)]
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("TRIAL")) :]
    assert table[0].split() == ["TRIAL", "STATE", "accuracy", "lr", "kind", "TOOK"]
    assert len(table) == 7
    # Of the two equal ones the one that was started first.
    assert re.match(r"run_2 +Completed +1 +\S+ +0.3 +good", table[1])
    assert any(line.startswith("best accuracy 1: run_2  lr=0.3 kind=good") for line in lines)


def test_show(shell: Shell, followed: subprocess.CompletedProcess[str]) -> None:
    text = shell("sweep", "show", "last", "-n", "2").stdout
    assert "3 completed  3 failed" in text and text.endswith("and 4 more trials\n")
    assert "failed: " in text and "ValueError: no luck" in text
    data = shell.data("sweep", "show", "last", "--limit", "1")
    assert (data["status"], data["total"], data["sampling"], data["policy"]) == ("Completed", 6, "grid", "none")
    assert data["counts"]["failed"] == 3 and len(data["trials"]) == 1
    assert data["best"]["parameters"] == {"--lr": 0.3, "--kind": "good"}
    assert data["best"]["series"] == pytest.approx([1 / 3, 2 / 3, 1])
    # A trial means its sweep, and so does the beginning of an id.
    assert shell.data("sweep", "show", data["best"]["id"])["id"] == data["id"]
    assert shell.data("sweep", "show", "-f", "@1")["id"] == data["id"]


def test_list(shell: Shell, followed: subprocess.CompletedProcess[str]) -> None:
    lines = shell("sweep", "list").stdout.splitlines()
    assert lines[0].split() == ["SWEEP", "EXPERIMENT", "STATUS", "TRIALS", "METRIC", "BEST", "TOOK", "CREATED"]
    assert any(line.split()[1:6] == ["project", "Completed", "6/6", "accuracy", "1"] for line in lines)
    assert "trials" not in shell.data("sweep", "list", "-e", "project")[0]
    assert shell.data("sweep", "list", "-e", "another") == []


def test_plot(shell: Shell, followed: subprocess.CompletedProcess[str]) -> None:
    shell("sweep", "plot", "last", "-o", "parallel.svg")
    assert shell.data("sweep", "plot", "last", "--kind", "scatter", "-o", "scatter.png")["trials"] == 6
    assert (shell.folder / "parallel.svg").read_text().startswith("<svg ")
    assert (shell.folder / "scatter.png").read_bytes().startswith(b"\x89PNG")
    assert "neither an .svg nor a .png" in shell("sweep", "plot", "last", "-o", "a.gif", code=2).stderr
    assert "does not exist" in shell("sweep", "plot", "last", "--kind", "pie", code=2).stderr


def test_a_program_has_the_same_picture(shell: Shell, followed: subprocess.CompletedProcess[str]) -> None:
    workspace = Workspace(path=shell.home / "workspaces" / "default")
    run = next(Experiment(workspace, "project").get_runs(type="hyperdrive"))
    assert isinstance(run, HyperDriveRun)
    shell("sweep", "plot", run.id, "-o", "same.svg")
    assert (shell.folder / "same.svg").read_text() == run.plot()._repr_svg_()
    assert run.plot("scatter").svg() != run.plot().svg()


def test_show_and_logs_of_the_run(shell: Shell, followed: subprocess.CompletedProcess[str]) -> None:
    assert "_aml_system_" not in shell("show", "last").stdout
    logs = shell("logs", "last")
    assert "run_0 starts: --lr 0.1 --kind good" in logs.stdout and "sweep show" in logs.stderr


def test_a_dry_run_writes_nothing(shell: Shell, tmp_path: Path) -> None:
    bare = Shell(tmp_path)
    text = bare("sweep", "submit", "project/sweep.yaml", "--dry-run").stdout
    assert "--lr 0.1 --kind good" in text and "6 trials, 2 at once" in text and "choice(good, bad)" in text
    assert not bare.home.exists()
    assert bare.data("sweep", "submit", "project/sweep.yaml", "--dry-run")["samples"][1]["arguments"] == [
        "--lr", "0.1", "--kind", "bad",
    ]  # fmt: skip


def test_a_metric_that_never_appears_is_named(shell: Shell) -> None:
    sweep = SWEEP.replace("script: train.py", "script: train.py, arguments: --metric Accuracy").replace(", bad", "")
    path = shell.write("misnamed", sweep=sweep)
    done = shell("sweep", "submit", path, "--wait", code=1)
    said = r"^note: run_\d completed without logging the primary metric 'accuracy'; logged instead: 'Accuracy'$"
    assert len(re.findall(said, done.stdout, re.MULTILINE)) >= 1
    assert "none logged the primary metric 'accuracy'" in done.stdout


def test_mistakes(shell: Shell, followed: subprocess.CompletedProcess[str]) -> None:
    broken = shell.write("broken", sweep=SWEEP.replace("goal: maximize", "gaol: maximize"))
    error = shell("sweep", "submit", broken, code=2).stderr
    assert "sweep.yaml, line 7, gaol: unknown key" in error and "Did you mean goal?" in error
    assert shell.data("sweep", "submit", broken, code=2)["error"]["exit_code"] == 2
    assert "max_total_runs: 40" in shell("sweep", "submit", "gone.yaml", code=2).stderr
    run = shell("submit", "project", "train.py", "--user-managed", "--", "--lr", "1").stdout.strip()
    assert "is not a sweep" in shell("sweep", "show", run, code=2).stderr
    assert "sweep list" in shell("sweep", "show", "nonsense", code=4).stderr
    assert "sweeps" in shell("sweep", "show", "@999", code=2).stderr
    assert "--limit" in shell("sweep", "show", "last", "-n", "0", code=2).stderr


class Terminal:
    """A command in a terminal of its own, 80 columns wide."""

    def __init__(self, shell: Shell, *argv: str) -> None:
        import fcntl
        import struct
        import termios

        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *argv], cwd=shell.folder, env={**shell.variables, "COLUMNS": "", "LINES": ""},
            stdin=self._theirs, stdout=self._theirs, stderr=self._theirs, start_new_session=True,
        )  # fmt: skip
        self.text = ""

    def read_until(self, words: str) -> None:
        def found() -> bool:
            while select.select([self._ours], [], [], 0.05)[0]:
                self.text += os.read(self._ours, 65536).decode(errors="replace")
            return words in self.text

        until(found, what=f"{words!r} in the terminal")

    def close(self) -> None:
        os.close(self._theirs)
        os.close(self._ours)


def test_a_terminal_draws_in_place_and_ctrl_c_ends_only_the_looking(shell: Shell, gate: Callable[..., Gate]) -> None:
    middle = gate("middle")
    path = shell.write("gated", train=TRAIN.format(wait=middle.wait), sweep=SWEEP.replace("runs: 2", "runs: 1"))
    sweep = shell("sweep", "submit", path).stdout.strip()
    terminal = Terminal(shell, "sweep", "show", "-f", sweep)
    try:
        middle.await_arrival()
        terminal.read_until("1 going")
        os.killpg(terminal.process.pid, signal.SIGINT)
        terminal.read_until(f"sweep {sweep} continues")
        assert terminal.process.wait(120) == 130
    finally:
        terminal.close()
    again = Terminal(shell, "sweep", "show", "-f", sweep)
    try:
        again.read_until("0 of 6 trials")
        shell("cancel", sweep)
        again.read_until("1 canceled")
        again.read_until("the sweep was cancelled")
        assert again.process.wait(120) == 3
        # All of it: it may have come in parts.
        again.read_until("the sweep was cancelled")
        assert re.search(r"\x1b\[\d+A", again.text)
        frames = again.text.split("\x1b[J")[:-1]
        # Before the end, which may be longer, every line fits.
        shown = [re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", line) for frame in frames[:-1] for line in frame.split("\r\n")]
        assert shown and max(map(len, shown)) < 80
    finally:
        again.close()


def test_an_environment_that_cannot_be_built_ends_the_sweep(shell: Shell) -> None:
    path = shell.write("unbuilt", sweep=SWEEP.replace("user_managed: true", "pip: [a-package-that-nobody-made]"))
    done = shell("sweep", "submit", path, "--follow", code=1)
    assert "the environment could not be built" in done.stdout and "trials in a row failed" in done.stdout
