"""Cancel and time-out of runs with two nodes of two processes each, at random moments: no process may stay.

`CHAOS_SEED` repeats a storm, `CHAOS_CANCELS` sets how many cancels it has.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import end_workspace, ended, run_folder, until
from trainmaster import ComputeTarget, Estimator, Experiment, Gloo, LocalCompute, Mpi, PyTorch, Workspace
from trainmaster.job.agent.tree import processes_of
from trainmaster.sdk.run.run import Run

CANCELS = int(os.environ.get("CHAOS_CANCELS", "100"))
TIMEOUTS = 6
STUBBORN = 4
AT_ONCE = 4

# Every rank leaves a process that got out of its session, and one below it.
SCRIPT = """
import os, signal, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "600"])
    time.sleep(600)
open("begun-" + os.environ["RANK"], "w").close()
time.sleep(600)
"""


class Trial(NamedTuple):
    """What is done to one run."""

    number: int
    backend: str
    moment: str
    """What has to have happened before the cancel; empty for a run that meets its time limit."""
    pause: float
    stubborn: bool = False
    """Whether its processes do not hear that they shall end."""


def draw(chance: random.Random) -> list[Trial]:
    """The storm: pure, so that a seed repeats it."""
    moments = ["queued", "queued", "claimed", "started", "one begun", "all begun"]
    trials = [
        Trial(number, chance.choice(["mpi", "gloo"]), chance.choice(moments), chance.choice([0, chance.random() * 0.3]))
        for number in range(CANCELS)
    ]
    trials += [Trial(1000 + number, ["mpi", "gloo"][number % 2], "", 0.0) for number in range(TIMEOUTS)]
    trials += [Trial(2000 + number, ["mpi", "gloo"][number % 2], "all begun", 0.0, True) for number in range(STUBBORN)]
    return chance.sample(trials, len(trials))


class Storm:
    """A workspace with room for a few of the runs at once."""

    def __init__(self, workspace: Workspace, source: Path) -> None:
        self.workspace = workspace
        self.experiment = Experiment(workspace, "storm")
        self._source = str(source)
        self.seen: collections.Counter[tuple[str, str]] = collections.Counter()

    def meet(self, trial: Trial) -> None:
        """Submits one run, ends it at its moment, and looks whether all of it is gone."""
        run = self.experiment.submit(self._estimator(trial))
        if trial.moment:
            until(lambda: self._has_come(run, trial.moment), what=f"'{trial.moment}' of {trial}")
            # The moment of the cancel is the point of the test, not a wait for something.
            time.sleep(trial.pause)
            self.seen[trial.backend, run.get_status()] += 1
            run.cancel()
        details = ended(run)
        context = f"{trial}: {details['status']} {details.get('error')}"
        assert processes_of(run.id) == [], context
        assert details["status"] == "Canceled", context
        code = details.get("error", {}).get("code")
        assert code == (None if trial.moment else "MaxRunDurationExceeded"), context

    def _estimator(self, trial: Trial) -> Estimator:
        mpi = trial.backend == "mpi"
        settings: dict[str, Any] = {} if mpi else {"user_managed": True, "process_count_per_node": 2}
        return (Estimator if mpi else PyTorch)(
            self._source,
            entry_script="train.py",
            script_params={"stubborn": ""} if trial.stubborn else None,
            compute_target="box",
            node_count=2,
            distributed_training=Mpi(process_count_per_node=2) if mpi else Gloo(),
            max_run_duration_seconds=None if trial.moment else 1,
            **settings,
        )

    def _has_come(self, run: Run, moment: str) -> bool:
        folder = run_folder(run)
        begun = len(list(folder.code.glob("begun-*"))) if moment.endswith("begun") else 0
        return {
            "queued": lambda: True,
            "claimed": lambda: (folder.node(0) / "agent.json").exists(),
            "started": lambda: (folder.node(0) / "running.json").exists(),
            "one begun": lambda: begun >= 1,
            "all begun": lambda: begun == 4,
        }[moment]()


@pytest.fixture
def storm(tmp_path: Path, project: Callable[..., Path]) -> Iterator[Storm]:
    workspace = Workspace.create("storm", path=tmp_path / "workspace", show_output=False)
    ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=2 * AT_ONCE))
    yield Storm(workspace, project(train=SCRIPT))
    end_workspace(workspace.path)


@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore:process_count_per_node is deprecated")
def test_no_process_stays_whenever_a_run_is_ended(storm: Storm) -> None:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"\nCHAOS_SEED={seed}")
    trials = draw(random.Random(seed))
    # The environment of the MPI runs is built before: else half of the moments would be its building.
    storm.meet(Trial(-1, "mpi", "all begun", 0.0))
    storm.seen.clear()
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(storm.meet, trial) for trial in trials]:
            done.result()
    print(f"{len(trials)} runs in {time.monotonic() - begun:.0f} s; the states they were cancelled in:")
    for (backend, status), count in sorted(storm.seen.items()):
        print(f"  {backend:6s}{status:18s}{count:4d}")
    assert {backend for backend, _ in storm.seen} == {"mpi", "gloo"}
    # Not by the variables that processes of a run have, which a launcher's daemon might drop: whoever is in the folder.
    # Agents that have said how their runs ended, and are about to end themselves, are not what stays.
    with contextlib.suppress(AssertionError):
        until(lambda: not _processes_in(storm.workspace.path))
    assert _processes_in(storm.workspace.path) == []


def _processes_in(folder: Path) -> list[str]:
    """Living processes that work in `folder`, came from it or know its path.

    Not the dispatcher, its agent pool, and idle agents of the pool, which have no children.
    """
    found = []
    dispatcher = (folder / "dispatcher.lock").read_text().strip()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name in (dispatcher, str(os.getpid())):
            continue
        with contextlib.suppress(OSError):
            known = b"\0".join((entry / name).read_bytes() for name in ("cmdline", "environ"))
            parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            below = (entry / "task" / entry.name / "children").read_text()
            if b"\0--pool\0" in known and (parent == dispatcher or not below):
                continue
            if os.fsencode(folder) in known or (entry / "cwd").readlink().is_relative_to(folder):
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()!r}")
    return found
