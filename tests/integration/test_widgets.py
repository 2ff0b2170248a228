"""RunDetails where people use it: a real Jupyter kernel, a terminal, a pipe."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from tests.backends import opening_code
from tests.conftest import ended, until
from tests.integration.conftest import Gate

from trainmaster import Experiment, Workspace
from trainmaster.job.errors import UserErrorException
from trainmaster.notebook.widgets import RunDetails
from trainmaster.sdk.run.run import Run

BACKENDS = ("local", "server")

pytestmark = pytest.mark.usefixtures("notebook_folder")

SCRIPT = """\
from trainmaster import Run
run = Run.get_context()
run.log("loss", 1.0)
print("before the gate", flush=True)
{wait}
for value in (0.5, 0.25):
    run.log("loss", value)
print("behind the gate", flush=True)
"""
FIND = "from trainmaster import Workspace\nrun = {workspace}.get_run({id!r})\n"
SHOW = "from trainmaster.notebook.widgets import RunDetails\nRunDetails(run).show()\n"


def finding(run: Run) -> str:
    return FIND.format(workspace=opening_code(run.experiment.workspace), id=run.id)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a kernel that is this Python, known only to the test."""
    place = tmp_path / "jupyter/kernels/this"
    place.mkdir(parents=True)
    words = ", ".join(f'"{word}"' for word in (sys.executable, "-m", "ipykernel_launcher", "-f"))
    (place / "kernel.json").write_text(
        f'{{"argv": [{words}, "{{connection_file}}"], "display_name": "this", "language": "python"}}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return "this"


def played(kernel: str, *cells: str) -> Any:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, kernel_name=kernel, timeout=240, startup_timeout=240).execute()
    return book


def html_of(cell: Any) -> str:
    (shown,) = [output for output in cell.outputs if output.output_type == "display_data"]
    return shown.data["text/html"]


def test_a_notebook_shows_the_run_as_it_goes_and_keeps_how_it_ended(
    launch: Callable[..., Run], gate: Callable[..., Gate], kernel: str
) -> None:
    middle = gate("middle")
    run = launch(SCRIPT.format(wait=middle.wait))
    middle.await_arrival()
    book = played(
        kernel,
        finding(run) + SHOW,
        # Returned at once: otherwise nobody would open the gate. The view follows in the thread.
        f"print(run.get_status()); import os; os.close(os.open({str(middle.path)!r}, os.O_WRONLY))",
        "run.wait_for_completion()['status']",
    )
    assert book.cells[1].outputs[0].text.strip() == "Running"
    html = html_of(book.cells[0])
    assert "Completed</span>" in html
    assert "<polyline" in html
    assert "behind the gate" in html
    assert not [output for cell in book.cells for output in cell.outputs if output.get("name") == "stderr"]


def test_the_view_follows_without_any_cell_that_runs(
    launch: Callable[..., Run], gate: Callable[..., Gate], kernel: str
) -> None:
    """What the thread draws while a cell is busy reaches the place below the first cell."""
    middle = gate("middle")
    run = launch(SCRIPT.format(wait=middle.wait))
    middle.await_arrival()
    busy = (
        "import threading, IPython.display as d\n"
        "seen = threading.Event()\n"
        "update = d.DisplayHandle.update\n"
        "def noticed(self, data, **options):\n"
        "    update(self, data, **options)\n"
        "    if 'Completed</span>' in data['text/html']: seen.set()\n"
        "d.DisplayHandle.update = noticed\n"
    )
    release = (
        f"import os; os.close(os.open({str(middle.path)!r}, os.O_WRONLY))\n"
        "assert seen.wait(200)\n"
        "get_ipython().events.callbacks['post_execute'].clear()"
    )
    book = played(kernel, busy + finding(run) + SHOW, release)
    assert "Completed</span>" in html_of(book.cells[0])


def test_a_failed_run_shows_its_error_first(launch: Callable[..., Run], kernel: str) -> None:
    run = launch("print('before')\nraise ValueError('no luck')")
    assert ended(run)["status"] == "Failed"
    html = html_of(played(kernel, finding(run) + SHOW).cells[0])
    assert html.index("ScriptFailed") < html.index("Failed</span>")
    assert "ValueError: no luck" in html


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, script: str, rows: int = 40, columns: int = 100) -> None:
        import fcntl
        import struct
        import termios

        self.master, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""},
            start_new_session=True,
        )
        self.theirs = theirs
        self.text = ""

    def read_until(self, words: str, seconds: float = 60.0) -> None:
        def found() -> bool:
            self._read()
            return words in self.text

        until(found, seconds, f"{words!r} in the terminal")

    def _read(self) -> None:
        while select.select([self.master], [], [], 0.05)[0]:
            self.text += os.read(self.master, 65536).decode(errors="replace")

    def unchanged(self) -> bool:
        import termios

        return termios.tcgetattr(self.theirs) == self.modes

    def close(self) -> None:
        os.close(self.theirs)
        os.close(self.master)


def test_a_terminal_shows_a_live_table(launch: Callable[..., Run], gate: Callable[..., Gate]) -> None:
    middle = gate("middle")
    run = launch(SCRIPT.format(wait=middle.wait))
    terminal = Terminal(finding(run) + SHOW + "print('returned')")
    try:
        middle.await_arrival()
        terminal.read_until("before the gate")
        assert "returned" not in terminal.text
        middle.open()
        terminal.read_until("returned")
        assert terminal.process.wait(120) == 0
        assert "Completed" in terminal.text and "▁" in terminal.text
        # Drawn over what was there before.
        assert re.search(r"\x1b\[\d+A", terminal.text)
        assert terminal.unchanged()
    finally:
        terminal.close()


def test_interrupt_ends_the_looking_but_not_the_run(launch: Callable[..., Run], gate: Callable[..., Gate]) -> None:
    middle = gate("middle")
    run = launch(SCRIPT.format(wait=middle.wait))
    terminal = Terminal(finding(run) + SHOW + "print('returned')")
    try:
        middle.await_arrival()
        terminal.read_until("before the gate")
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.read_until("returned")
        assert f"run {run.id} continues" in terminal.text
        assert terminal.process.wait(120) == 0
        assert terminal.unchanged()
        assert "\x1b[?25l" not in terminal.text
    finally:
        terminal.close()
    middle.open()
    assert ended(run)["status"] == "Completed"


def test_a_pipe_gets_plain_lines(launch: Callable[..., Run]) -> None:
    run = launch(SCRIPT.format(wait="pass"))
    done = subprocess.run(
        [sys.executable, "-c", finding(run) + SHOW], capture_output=True, text=True, check=True, timeout=120
    )
    assert "\x1b" not in done.stdout
    assert f"Completed  {run.id}" in done.stdout
    assert "behind the gate" in done.stdout


def test_a_run_of_this_program_is_shown_and_not_waited_for(
    shared: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Experiment(shared, "widget-own").start_logging(snapshot_directory=None)
    run.log("loss", 0.5)
    RunDetails(run).show()
    assert f"Running  {run.id}" in capsys.readouterr().out
    run.complete()


def test_the_data_behind_the_view(shared: Workspace) -> None:
    run = Experiment(shared, "widget-data").start_logging(snapshot_directory=None)
    run.log("loss", 0.5)
    run.log("loss", 0.25)
    child = run.child_run()
    child.complete()
    run.complete()
    data = RunDetails(run).get_widget_data()
    assert (data["status"], data["run_id"], data["error"]) == ("Completed", run.id, None)
    assert data["run_metrics"] == [
        {"name": "loss", "run_id": run.id, "categories": [0, 1], "series": [{"data": [0.5, 0.25]}]}
    ]
    assert data["child_runs"] == [{"run_id": child.id, "status": "Completed"}]


def test_processes_of_a_distributed_run_can_be_seen(launch: Callable[..., Run]) -> None:
    from trainmaster import Gloo

    script = "import os\nprint('hello from', os.environ['RANK'], flush=True)\n"
    run = launch(script, node_count=2, distributed_training=Gloo())
    assert ended(run)["status"] == "Completed"
    ranks = RunDetails(run).get_widget_data()["ranks"]
    assert [(rank["name"], rank["last_line"]) for rank in ranks] == [
        ("rank 0", "hello from 0"),
        ("rank 1", "hello from 1"),
    ]


@pytest.mark.parametrize("wrong", [None, "run_1", 7])
def test_only_runs_can_be_shown(wrong: Any) -> None:
    with pytest.raises(UserErrorException, match="RunDetails shows a run"):
        RunDetails(wrong)
