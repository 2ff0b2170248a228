"""SIGKILL for everything that belongs to a sweep, at random: it goes on, and ends as if nothing had been.

`CHAOS_SEED` repeats a storm.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.agents import kill_agent
from tests.conftest import end_workspace, until
from trainmaster import ComputeTarget, HyperDriveRun, LocalCompute, Workspace
from trainmaster.job.agent import process
from trainmaster.job.agent.tree import processes_of
from trainmaster.job.errors import RunNotFoundException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import Status
from trainmaster.tuning.view import SweepView

pytestmark = pytest.mark.timeout(600)

HERE = Path(__file__).parent
TRIALS, KILLS, EARLY_KILLS = 50, 20, 3
SWEEP = "storm_sweep"
VICTIMS = ["dispatcher", "dispatcher", "agent", "script", "submitter"]


class SweepStorm:
    """One sweep, which somebody submits and waits for; and what was killed of it."""

    def __init__(self, workspace: Workspace, base: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = WorkspaceFolder(workspace.path)
        self.workspace = workspace
        self.kills: collections.Counter[str] = collections.Counter()
        self.struck: set[str] = set()
        self.source, self.proofs = base / "source", base / "proofs"
        self.source.mkdir()
        self.proofs.mkdir()
        shutil.copy(HERE / "sweep_job.py", self.source)
        self._submitter: subprocess.Popen[bytes] | None = None

    def rage(self) -> None:
        """First those who submit, then everybody; each time a few more trials have begun, somebody is killed."""
        for _ in range(EARLY_KILLS):
            self._have_a_submitter()
            time.sleep(self.random.random() * 1.5)
            self._strike("submitter")
        (self.proofs / "go").touch()
        while sum(self.kills.values()) < KILLS:
            self._have_a_submitter()
            begun = max(0, sum(self.kills.values()) - EARLY_KILLS + 1) * 2
            until(lambda: self._has_come_to(begun), what=f"trial {begun}")  # noqa: B023
            time.sleep(self.random.random() * 0.1)
            self._strike(self.random.choice(VICTIMS))

    def _strike(self, victim: str) -> None:
        if self._kill(victim):
            self.kills[victim] += 1

    def _has_come_to(self, number: int) -> bool:
        self._have_a_submitter()
        return (self.folder.runs / f"{SWEEP}_{number}").exists()

    def _have_a_submitter(self) -> None:
        if self._submitter is not None and self._submitter.poll() is None:
            return
        arguments = [str(self.folder.path), str(self.source), str(self.proofs), SWEEP, str(TRIALS)]
        command = [sys.executable, str(HERE / ("sweep_watcher.py" if self._is_known() else "sweep_submitter.py"))]
        self._submitter = subprocess.Popen([*command, *arguments], stderr=subprocess.DEVNULL)

    def _is_known(self) -> bool:
        try:
            self.workspace.connection.call("runs.get", run_id=SWEEP)
        except RunNotFoundException:
            return False
        return True

    def _kill(self, victim: str) -> bool:
        if victim == "submitter":
            assert self._submitter is not None
            self._submitter.kill()
            return self._submitter.wait() == -signal.SIGKILL
        if victim == "dispatcher":
            with contextlib.suppress(OSError, ValueError):
                pid = int(self.folder.lock.read_text())
                if b"trainmaster.dispatcher" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return _kill(pid)
            return False
        return self._kill_trial(victim)

    def _kill_trial(self, victim: str) -> bool:
        claims = sorted(self.folder.runs.glob(f"{SWEEP}_*/nodes/0/agent.json"))
        self.random.shuffle(claims)
        for claim in claims:
            noted = read_json(claim)
            if victim == "script":
                running = read_json(claim.with_name("running.json"))
                noted = running["processes"][0] if running else None
            if noted and process.start_time(noted["pid"]) == noted["start_time"]:
                self.struck.add(claim.parents[2].name)
                if victim == "agent":
                    return kill_agent(noted, self.folder.runs, self.struck)
                return _kill(noted["pid"])
        return False

    def end(self) -> None:
        if self._submitter is not None:
            self._submitter.kill()
            self._submitter.wait()


def read_json(path: Path) -> Any:
    """What is in the file; None if it is not there (any more)."""
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())
    return None


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[SweepStorm]:
    ws = Workspace.create("storm", path=tmp_path / "workspace", show_output=False)
    ComputeTarget.create(ws, "box", LocalCompute.configuration(nodes=4))
    seed = int(os.environ.get("CHAOS_SEED", "0")) or random.randrange(1 << 30)
    print(f"CHAOS_SEED={seed}")
    found = SweepStorm(ws, tmp_path, seed)
    yield found
    found.end()
    end_workspace(ws.path)


def test_a_sweep_that_is_killed_twenty_times_ends_right(storm: SweepStorm) -> None:
    storm.rage()
    run = storm.workspace.get_run(SWEEP)
    assert isinstance(run, HyperDriveRun)
    details = run.wait_for_completion(raise_on_error=False)
    view = run.get_view()
    print(dict(storm.kills), collections.Counter(str(trial.status) for trial in view.trials))
    assert details["status"] == "Completed", details
    _check_trials(storm, view)
    _check_log(storm, view)
    assert run.get_best_run_by_primary_metric() is not None


def _check_trials(storm: SweepStorm, view: SweepView) -> None:
    """Every point of the grid once, in its order; each begun once; and it ended for a reason."""
    assert [trial.parameters["--value"] for trial in view.trials] == list(range(TRIALS))
    assert [trial.run_id for trial in view.trials] == [f"{SWEEP}_{number}" for number in range(TRIALS)]
    for trial in view.trials:
        proof = storm.proofs / trial.run_id
        lines = proof.read_text().split() if proof.exists() else []
        assert lines.count("begun") <= 1, f"{trial.run_id} began twice"
        told = max((int(line) + 1 for line in lines if line.isdigit()), default=0)
        assert trial.reports >= told, f"{trial.run_id} lost a report"
        if trial.status == Status.COMPLETED:
            assert lines[-1] == "done"
        elif trial.status == Status.CANCELED:
            assert trial.cut_reason
        else:
            assert trial.status == Status.FAILED and trial.run_id in storm.struck, trial
        assert not processes_of(trial.run_id)
    assert any(trial.cut_reason for trial in view.trials)


def _check_log(storm: SweepStorm, view: SweepView) -> None:
    """Each start and each cut is told once, and the end."""
    lines = (storm.folder.run(SWEEP).logs / "hyperdrive.txt").read_text().splitlines()
    said = [line[20:] for line in lines]
    starts = [line for line in said if " starts: " in line]
    assert len(starts) == TRIALS and len(set(starts)) == TRIALS
    for trial in view.trials:
        if trial.cut_reason:
            assert said.count(trial.cut_reason) == 1
    assert said[-1] == f"the sweep is Completed: all {TRIALS} trials have ended"
