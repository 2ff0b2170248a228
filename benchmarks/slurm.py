"""What Trainmaster costs on Slurm: from the call to the script's first line, against a bare sbatch of the same script.

Both on the same real cluster, in turns. Also: how often Slurm is asked what it does, while many runs are there.

    python -m benchmarks.slurm [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.slurm import MiniSlurm, variables
from tests.conftest import end_workspace

from trainmaster import Estimator, Experiment, Workspace
from trainmaster.sdk.compute.slurm import SlurmCompute
from trainmaster.sdk.compute.target import ComputeTarget

ROUNDS = 15
CROWD = 40
# Longer than any interval at which this cluster looks at its queue: every job finds it idle.
QUIET_SECONDS = 1.3
SCRIPT = "import sys, time\nopen(sys.argv[1], 'w').write(repr(time.time()))\n"


def first_line(place: Path) -> float:
    """When the script began, as it says itself."""
    deadline = time.time() + 120
    while not (place.exists() and place.read_text()):
        assert time.time() < deadline, "the script did not begin"
        time.sleep(0.005)
    return float(place.read_text())


def bare(slurm: MiniSlurm, folder: Path, number: int) -> tuple[float, float]:
    """Seconds to the first line, and how many of them the job stood in Slurm's queue."""
    place = folder / f"bare{number}"
    begin = time.time()
    command = f"exec {sys.executable} {folder}/source/train.py {place}"
    script = f"#!/bin/sh\n{command}\n"
    given = ["sbatch", "--parsable", "--exclusive", f"--output={folder}/bare.log"]
    done = subprocess.run(given, input=script, text=True, check=True, capture_output=True)
    return first_line(place) - begin, slurm.queued_seconds(done.stdout.strip())


def ours(slurm: MiniSlurm, experiment: Experiment, folder: Path, number: int) -> tuple[float, float]:
    """The same, through Trainmaster."""
    place = folder / f"ours{number}"
    begin = time.time()
    run = experiment.submit(estimator(folder, place))
    took = first_line(place) - begin
    run.wait_for_completion()
    return took, slurm.queued_seconds(run.get_properties()["slurm.job_id"])


def estimator(folder: Path, place: Path) -> Estimator:
    return Estimator(
        str(folder / "source"), entry_script="train.py", script_params={str(place): ""}, user_managed=True,
        compute_target="cluster",
    )  # fmt: skip


def count_squeue(folder: Path) -> Path:
    """Puts a squeue on the PATH that notes when it was called; returns the folder it is in."""
    place = folder / "counted"
    place.mkdir()
    real = shutil.which("squeue")
    program = place / "squeue"
    program.write_text(f'#!/bin/sh\ndate +%s.%N >>{place}/calls\nexec {real} "$@"\n')
    program.chmod(0o755)
    return place


def busiest_second(calls: list[float]) -> int:
    """The most calls within a second."""
    return max((sum(begin <= call < begin + 1.0 for call in calls) for begin in calls), default=0)


def crowd(experiment: Experiment, folder: Path, calls: Path) -> dict[str, float]:
    """Many runs at once: how often squeue was called."""
    calls.write_text("")
    begin = time.time()
    runs = [experiment.submit(estimator(folder, folder / f"crowd{number}")) for number in range(CROWD)]
    for run in runs:
        run.wait_for_completion()
    taken = time.time() - begin
    noted = [float(line) for line in calls.read_text().split()]
    return {
        "crowd_runs": CROWD,
        "crowd_seconds": taken,
        "squeue_per_second": len(noted) / taken,
        "squeue_busiest_second": busiest_second(noted),
    }


def measure() -> dict[str, float]:
    """All figures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["TRAINMASTER_HOME"] = str(folder / "home")
        (folder / "source").mkdir()
        (folder / "source/train.py").write_text(SCRIPT)
        with MiniSlurm(folder / "cluster", nodes=4) as slurm, variables(slurm), contextlib.ExitStack() as stack:
            counted = count_squeue(folder)
            os.environ["PATH"] = f"{counted}:{os.environ['PATH']}"
            workspace = Workspace.create("benchmark", path=folder / "workspace", show_output=False)
            stack.callback(end_workspace, workspace.path)
            ComputeTarget.create(workspace, "cluster", SlurmCompute.configuration(max_nodes=4))
            experiment = Experiment(workspace, "slurm")
            ours(slurm, experiment, folder, -1)
            times: dict[str, list[tuple[float, float]]] = {"bare": [], "ours": []}
            for number in range(ROUNDS):
                time.sleep(QUIET_SECONDS + random.random())
                times["bare"].append(bare(slurm, folder, number))
                time.sleep(QUIET_SECONDS + random.random())
                times["ours"].append(ours(slurm, experiment, folder, number))
            whole = {name: statistics.median(each[0] for each in taken) * 1e3 for name, taken in times.items()}
            work = {name: statistics.median(each[0] - each[1] for each in taken) * 1e3 for name, taken in times.items()}
            figures = crowd(experiment, folder, counted / "calls")
    return {
        "sbatch_ms": whole["bare"],
        "trainmaster_ms": whole["ours"],
        # Slurm looks at its queue when it likes, up to half a second later: that is nobody's cost.
        "sbatch_without_queue_ms": work["bare"],
        "trainmaster_without_queue_ms": work["ours"],
        "overhead_ms": work["ours"] - work["bare"],
        **figures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:>28}  {round(figure, 2)}")


if __name__ == "__main__":
    main()
