"""SIGKILL for the submitting program, the dispatcher, the node agent, the script and the environment's builder.

In every state of a run, chosen at random. `CHAOS_SEED` repeats a storm, `CHAOS_KILLS` sets how many kills it has.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.agents import kill_agent
from tests.chaos.wheels import make_wheel
from trainmaster import ComputeTarget, LocalCompute, Workspace
from trainmaster.job.agent import process
from trainmaster.job.agent.tree import processes_of
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.json_files import read_json
from trainmaster.shared.records import ACTIVE, TERMINAL

KILLS = int(os.environ.get("CHAOS_KILLS", "200"))
HERE = Path(__file__).parent
STATES = ["NotStarted", "Preparing", "Queued", "Starting", "Running", "CancelRequested", "Finalizing"]
VICTIMS = ["dispatcher", "agent", "script", "submitter", "builder"]


class Storm:
    """Keeps runs coming, kills at random, and remembers what it did to whom."""

    def __init__(self, workspace: Workspace, base: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.workspace = workspace
        self.folder = WorkspaceFolder(workspace.path)
        self.base = base
        self.kills: collections.Counter[tuple[str, str]] = collections.Counter()
        self.victims = VICTIMS
        self.struck: set[str] = set()
        self.cancelled: set[str] = set()
        self.promised: set[str] = set()
        self._submitters: list[subprocess.Popen[str]] = []
        self._numbers = itertools.count()
        self._packages = itertools.count()

    def rage(self, kills: int) -> None:
        while sum(self.kills.values()) < kills:
            self._keep_busy()
            if self.random.random() < 0.1:
                self._cancel_one()
            self._strike()
        for submitter in list(self._submitters):
            self._hear(submitter)

    def _keep_busy(self) -> None:
        for submitter in [each for each in self._submitters if each.poll() is not None]:
            self._hear(submitter)
        if len(self.states()) < 6 and len(self._submitters) < 3:
            self._submitters.append(self._new_submitter())

    def _new_submitter(self) -> subprocess.Popen[str]:
        jobs = []
        for _ in range(3):
            package = ""
            if "builder" in self.victims and self.random.random() < 0.3:
                package = f"tiny{next(self._packages)}"
                make_wheel(self.base / "wheels", package)
            jobs.append(f"{self.random.randint(1, 60)}:{package}")
        command = [sys.executable, str(HERE / "submitter.py"), str(self.folder.path), str(self.base / "source")]
        return subprocess.Popen(
            [*command, str(self.base / "proofs"), f"s{next(self._numbers)}", *jobs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _hear(self, submitter: subprocess.Popen[str]) -> None:
        out, errors = submitter.communicate(timeout=120)
        assert submitter.returncode in (0, -signal.SIGKILL), errors
        self.promised.update(out.split())
        self._submitters.remove(submitter)

    def _cancel_one(self) -> None:
        runs = list(self.states())
        if runs:
            run_id = self.random.choice(runs)
            self.cancelled.add(run_id)
            self.workspace.connection.call("runs.cancel", run_id=run_id)

    def _strike(self) -> None:
        """Waits a moment for a run in the state that was drawn, then kills at once."""
        wanted, victim = self.random.choice(STATES), self.random.choice(self.victims)
        if victim == "builder":
            wanted = "Preparing"
        deadline = time.monotonic() + 0.3
        while True:
            now = self.states()
            chosen = [run_id for run_id, status in now.items() if status == wanted]
            if chosen or time.monotonic() > deadline:
                break
        run_id = self.random.choice(chosen or list(now) or [""])
        time.sleep(self.random.choice([0, 0, self.random.random() * 0.02]))
        if self._kill(victim, run_id):
            self.kills[victim, now.get(run_id, "-")] += 1

    def _kill(self, victim: str, run_id: str) -> bool:
        if victim == "dispatcher":
            return self._kill_dispatcher()
        if victim == "submitter":
            living = [each for each in self._submitters if each.poll() is None]
            if living:
                self.random.choice(living).kill()
            return bool(living)
        if victim == "builder":
            return self._kill_builder()
        if not run_id:
            return False
        node = self.folder.run(run_id).node(0)
        if victim == "agent":
            noted = read_json(node / "agent.json")
        else:
            running = read_json(node / "running.json")
            noted = running["processes"][0] if running else None
        if not noted or process.start_time(noted["pid"]) != noted["start_time"]:
            return False
        self.struck.add(run_id)
        if victim == "agent":
            return kill_agent(noted, self.folder.runs, self.struck)
        return _kill(noted["pid"])

    def _kill_dispatcher(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            pid = int(self.folder.lock.read_text())
            if b"trainmaster.dispatcher" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return _kill(pid)
        return False

    def _kill_builder(self) -> bool:
        """A builder works in the log folder of the run it builds for."""
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                logs = (entry / "cwd").readlink() if entry.name.isdigit() else Path("/")
                if (
                    logs.is_relative_to(self.folder.runs)
                    and b"trainmaster.environments" in (entry / "cmdline").read_bytes()
                ):
                    self.struck.add(logs.relative_to(self.folder.runs).parts[0])
                    return _kill(int(entry.name))
        return False

    def states(self) -> dict[str, str]:
        """The runs that have not ended: read past the dispatcher, which may be dead."""
        marks = ",".join(f"'{status}'" for status in ACTIVE)
        with contextlib.closing(sqlite3.connect(f"file:{self.folder.database}?mode=ro", uri=True, timeout=30)) as db:
            return dict(db.execute(f"SELECT id, status FROM runs WHERE status IN ({marks})"))


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def storm(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storm]:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"\nCHAOS_SEED={seed}")
    for folder in ("source", "proofs", "wheels"):
        (tmp_path / folder).mkdir()
    shutil.copy(HERE / "job.py", tmp_path / "source")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    # The dispatcher of the fixture was started without these; the next one has them.
    os.kill(int(WorkspaceFolder(workspace.path).lock.read_text()), signal.SIGKILL)
    ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=3))
    yield Storm(workspace, tmp_path, seed)


@pytest.mark.timeout(1500)
def test_every_run_ends_rightly_whatever_is_killed(storm: Storm) -> None:
    storm.rage(KILLS)
    runs = list(storm.workspace.experiments["storm"].get_runs())
    for run in runs:
        run.wait_for_completion(raise_on_error=False)
    print(f"{sum(storm.kills.values())} kills, {len(runs)} runs")
    for (victim, state), count in sorted(storm.kills.items()):
        print(f"  {victim:12s}{state:18s}{count:4d}")

    assert storm.promised <= {run.id for run in runs}, "a run whose submit returned is not there"
    assert {victim for victim, _ in storm.kills} == set(VICTIMS)
    ends: collections.Counter[str] = collections.Counter()
    for run in runs:
        ends[check_run(storm, run)] += 1
    print(f"  {dict(ends)}")
    assert ends["Completed"] > 10
    leftovers = [path.name for path in storm.folder.environments.iterdir() if path.name.startswith(".building")]
    assert len(leftovers) <= 1 + storm.kills.total(), leftovers


def check_run(storm: Storm, run: object) -> str:
    details = run.get_details()
    status, run_id = details["status"], run.id
    proof = Path(run.tags["proof"])
    lines = proof.read_text().split() if proof.exists() else []
    context = f"{run_id}: {status} {details.get('error')} {lines[-3:]} struck={run_id in storm.struck}"

    assert status in TERMINAL, context
    assert lines.count("begun") <= 1, f"the script ran twice: {context}"
    assert processes_of(run_id) == [], f"a process is left: {context}"
    logged = run.get_metrics().get("value", [])
    logged = logged if isinstance(logged, list) else [logged]
    proven = [int(line) for line in lines if line.isdigit()]
    assert logged[: len(proven)] == proven, f"a metric is missing: {context}"
    assert len(logged) <= len(proven) + 1, context

    done = "done" in lines
    if status == "Completed":
        assert done, context
        assert "outputs/result.txt" in run.get_file_names(), context
    elif status == "Canceled":
        assert run_id in storm.cancelled, context
    else:
        assert run_id in storm.struck, f"it failed although nobody touched it: {context}"
    if run_id not in storm.struck and run_id not in storm.cancelled:
        assert status == "Completed", context
    return str(status)
