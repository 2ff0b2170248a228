"""A node's part of a run for tests: a kit, a plan, a real agent, and ways to wait for what happens."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE

from trainmaster.job.agent import tree

SOURCE = Path(tree.__file__).resolve().parents[2]
SECONDS = PATIENCE


def interpreters() -> list[str]:
    """The oldest and the newest CPython (3.6 and up) on this machine."""
    candidates = [*Path.home().glob(".pyenv/versions/*/bin/python"), Path(sys.executable)]
    for folder in os.environ.get("PATH", "").split(":"):
        # PATH may have folders that this user cannot enter.
        if folder and os.access(folder, os.R_OK | os.X_OK):
            candidates += [*Path(folder).glob("python3.[0-9]"), *Path(folder).glob("python3.[0-9][0-9]")]
    found = {}
    for path in candidates:
        version = _version(path)
        if version >= (3, 6):
            found.setdefault(version, str(path))
    return [found[version] for version in sorted({min(found), max(found)})]


def _version(path: Path) -> tuple[int, ...]:
    asked = "import sys; print(*sys.version_info[:2], sys.implementation.name)"
    answer = subprocess.run([path, "-I", "-S", "-c", asked], capture_output=True, text=True, check=False)
    words = answer.stdout.split()
    return tuple(int(word) for word in words[:2]) if words[2:] == ["cpython"] else (0, 0)


def make_kit(kit: Path, *, with_cgroup: bool = True) -> Path:
    """The job side as the dispatcher lays it out; without cgroups as on a machine that has none."""
    package = kit / "trainmaster"
    package.mkdir(parents=True)
    for name in ("__init__.py", "onnx.py"):
        shutil.copy(SOURCE / name, package)
    shutil.copytree(SOURCE / "job", package / "job", ignore=shutil.ignore_patterns("__pycache__"))
    if not with_cgroup:
        with open(package / "job" / "agent" / "cgroup.py", "a") as file:
            file.write("\n\ndef path_for(run_id, node):\n    return None\n")
    return kit


class NodeRun:
    """One node's part of one run, in a separate folder."""

    def __init__(self, folder: Path, kit: Path, python: str, run_id: str, node: int = 0) -> None:
        self.kit, self.python, self.run_id = kit, python, run_id
        self.folder = folder / "runs" / run_id
        self.node = self.folder / "nodes" / str(node)
        self.node.mkdir(parents=True)
        self.log = self.folder / "files" / "azureml-logs" / "70_driver_log.txt"
        self.fifo = self.folder / "fifo"
        if not self.fifo.exists():
            os.mkfifo(self.fifo)
        # Open for both, so that neither side ever waits for the other to open it.
        self._fifo = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self.plan: dict[str, Any] = {
            "version": 1, "run_id": run_id, "node": node, "folder": str(self.folder), "layout": None, "links": [],
            "processes": [], "grace_seconds": 5.0, "time_limit_seconds": None, "notify": None,
        }  # fmt: skip
        self.agents: list[subprocess.Popen[bytes]] = []

    def rank(self, *argv: str, **env: str) -> NodeRun:
        """Adds a process with these arguments."""
        number = len(self.plan["processes"])
        log = self.log if number == 0 else self.log.with_name(f"70_driver_log_{number}.txt")
        variables = {"PATH": os.environ["PATH"], "FIFO": str(self.fifo), "GATE": str(self.folder / "gate"), **env}
        one = {"rank": number, "argv": list(argv), "env": variables, "cwd": str(self.folder / "code"), "log": str(log)}
        self.plan["processes"].append(one)
        return self

    def script(self, text: str, **env: str) -> NodeRun:
        """Adds a process that runs this Python text."""
        return self.rank(sys.executable, "-I", "-S", "-c", text, **env)

    def shell(self, text: str, **env: str) -> NodeRun:
        """Adds a process that runs this shell text."""
        return self.rank("sh", "-c", text, **env)

    def gate(self) -> Path:
        """The fifo named by $GATE, from which a script waits to read a line."""
        gate = self.folder / "gate"
        os.mkfifo(gate)
        return gate

    def start(self, **options: Any) -> subprocess.Popen[bytes]:
        """Writes the plan and starts an agent for it."""
        path = self.node / "plan.json"
        if not path.exists():
            path.write_text(json.dumps(self.plan))
        main = str(self.kit / "trainmaster" / "job" / "agent" / "__main__.py")
        with open(self.node / "agent.log", "ab") as log:
            agent = subprocess.Popen(
                [self.python, "-I", "-S", "-E", main, str(path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **options,
            )  # fmt: skip
        self.agents.append(agent)
        return agent

    def carry_out(self) -> dict[str, Any]:
        """Runs the agent to its end; the result."""
        self.start()
        return self.end()

    def end(self, code: int = 0) -> dict[str, Any]:
        """Waits for the agent's end; the result."""
        assert self.agents[-1].wait(SECONDS) == code, self.said()
        return self.result()

    def result(self) -> dict[str, Any]:
        return json.loads((self.node / "result.json").read_text())

    def said(self) -> str:
        return (self.node / "agent.log").read_text()

    def heard(self, lines: int = 1, meanwhile: Callable[[], Any] = lambda: None) -> list[str]:
        """Waits until the processes have written this many lines into $FIFO; calls `meanwhile` repeatedly."""
        text, until = b"", time.monotonic() + SECONDS
        while text.count(b"\n") < lines:
            meanwhile()
            if select.select([self._fifo], [], [], 0.1)[0]:
                text += os.read(self._fifo, 4096)
            assert time.monotonic() < until, f"only heard {text!r}; the agent says {self.said()}"
        return text.decode().split("\n")[:-1]

    def left(self) -> list[tuple[int, int, str]]:
        return tree.processes_of(self.run_id)

    def close(self) -> None:
        """Leaves nothing behind, whatever a failed test left."""
        os.close(self._fifo)
        for agent in self.agents:
            with contextlib.suppress(ProcessLookupError):
                agent.kill()
            agent.wait()
        claim = self.node / "agent.json"
        cgroup = json.loads(claim.read_text())["cgroup"] if claim.exists() else None
        tree.sweep(self.run_id, cgroup, grace_seconds=0)


def wait_gone(pid: int) -> None:
    """Waits until process `pid` has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], SECONDS)[0], f"process {pid} is still there"
    finally:
        os.close(handle)


def is_there(pid: int) -> bool:
    """Whether the process lives (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def terminate(agent: subprocess.Popen[bytes]) -> None:
    agent.send_signal(signal.SIGTERM)
