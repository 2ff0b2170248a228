"""Makes the pictures of the README and of docs/guide/sweeps.md: `.venv/bin/python docs/pictures/make.py [sweep]`.

Every picture is what commands printed that were really run, in a workspace of their own, on a terminal 116 columns
wide. Only the paths of this machine are replaced by those a reader would have.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PROGRAMS = Path(sys.executable).parent
WIDTH = 116

SLOW = "import time\ntime.sleep(600)\n"
BROKEN = """\
from trainmaster import Run

run = Run.get_context()
for epoch in range(10):
    run.log("loss", 1 / (3 - epoch))
    print("epoch", epoch, "done")
"""


class Terminal:
    """Runs commands in a folder and keeps what they print, as a person would have seen it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "TRAINMASTER_HOME": str(folder / ".trainmaster"),
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "COLUMNS": str(WIDTH),
        }
        self._console = self._new_console()

    def run(self, command: str, shown: str = "") -> None:
        """Runs `command` and records it as `shown`."""
        self._console.print(Text(f"$ {shown or command}", style="bold"))
        self._console.print(Text.from_ansi(self._cleaned(self.quietly(command)).rstrip()))
        self._console.print()

    def quietly(self, command: str) -> str:
        """What `command` prints on a terminal, standard error included."""
        ours, theirs = pty.openpty()
        os.system(f"stty cols {WIDTH} rows 50 < {os.ttyname(theirs)}")
        process = subprocess.Popen(
            command, shell=True, cwd=self._folder, env=self._environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            # Linux says so when the last writer is gone.
            pass
        process.wait()
        os.close(ours)
        return b"".join(parts).decode(errors="replace").replace("\r\n", "\n")

    def write(self, name: str, text: str) -> None:
        """A file of the folder."""
        (self._folder / name).write_text(text)

    def save(self, name: str, title: str) -> None:
        """Writes the picture and begins another."""
        drawn = self._console.export_svg(title=title)
        # The picture loads no font: the reader's own fixed-width font is used.
        drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code", "monospace")
        (HERE / name).write_text("\n".join(line.rstrip() for line in drawn.splitlines()) + "\n", encoding="utf-8")
        self._console = self._new_console()

    def _cleaned(self, text: str) -> str:
        text = text.replace(self._folder.as_uri(), "file:///home/you")
        for found, told in ((str(self._folder), "~"), (str(PROJECT), "~/trainmaster"), (sys.base_prefix, "/usr")):
            text = text.replace(found, told)
        return text

    @staticmethod
    def _new_console() -> Console:
        return Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")


def main(*names: str) -> None:
    """All pictures, or those of some functions below."""
    makers = [globals()[name] for name in names] or [demo, failed, looking, sweep]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        for name, script in (("slow", SLOW), ("broken", BROKEN)):
            (folder / name).mkdir()
            (folder / name / "train.py").write_text(script)
        terminal = Terminal(folder)
        try:
            for make in makers:
                make(terminal)
        finally:
            terminal.quietly("trainmaster cancel @1 @2 --wait")
            terminal.quietly("trainmaster down")


def demo(terminal: Terminal) -> None:
    """What `make demo` runs, the second time: then the environments are there already."""
    one, two = (f"{sys.executable} {PROJECT}/examples/{name}/submit.py" for name in ("pytorch", "mpi"))
    terminal.quietly(two)
    terminal.quietly(one)
    terminal.run(one, "make demo\n.venv/bin/python examples/pytorch/submit.py")
    terminal.save("demo.svg", "make demo")
    terminal.run(two, ".venv/bin/python examples/mpi/submit.py")
    terminal.run("trainmaster logs last --rank all")
    terminal.save("nodes.svg", "make demo: two nodes under Open MPI")


def failed(terminal: Terminal) -> None:
    """A script with a mistake."""
    terminal.run("trainmaster submit broken train.py --user-managed --wait")
    terminal.run("trainmaster show last")
    terminal.save("failed.svg", "a script with a mistake")


def looking(terminal: Terminal) -> None:
    """Runs that wait, run, failed and are completed; the metrics of one."""
    terminal.quietly("trainmaster compute create small --nodes 1")
    for _ in range(2):
        terminal.quietly("trainmaster submit slow train.py --user-managed --target small --max-seconds 120")
    terminal.run("trainmaster runs")
    terminal.run("trainmaster metrics @5")
    terminal.run("trainmaster files @5")
    terminal.save("runs.svg", "looking at runs")


def sweep(terminal: Terminal) -> None:
    """The sweep of examples/sweep-pytorch with more trials: the table, and both kinds of plot."""
    example = PROJECT / "examples" / "sweep-pytorch"
    program = (example / "submit.py").read_text().replace("max_total_runs=6", "max_total_runs=30")
    program = program.replace(
        '"--width": choice(8, 32, 64)', '"--width": choice(8, 16, 32, 64), "--epochs": choice(20, 30)'
    )
    terminal.write("sweep.py", program.replace("Path(__file__).parent", f"Path({str(example)!r})"))
    terminal.quietly(f"{sys.executable} sweep.py")
    terminal.run("trainmaster sweep show last -n 12")
    terminal.save("sweep.svg", "a sweep: the best trials first")
    for kind in ("parallel", "scatter"):
        terminal.quietly(f"trainmaster sweep plot last --kind {kind} -o {HERE / kind}.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
