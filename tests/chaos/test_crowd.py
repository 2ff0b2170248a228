"""Two programs submit 50 runs each to one workspace, ten others read meanwhile: all run, each once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster import ComputeTarget, LocalCompute, Workspace

RUNS = 50

SCRIPT = """
import os, sys
from trainmaster import Run
run = Run.get_context()
with open(sys.argv[1], "a") as file:
    file.write(run.id + "\\n")
run.log("number", 1)
"""

SUBMITTER = """
import sys
from trainmaster import Estimator, Experiment, Workspace
folder, source, proof, count = sys.argv[1:]
experiment = Experiment(Workspace(path=folder), "crowd")
estimator = Estimator(
    source, entry_script="train.py", script_params={proof: ""}, compute_target="box", user_managed=True
)
for _ in range(int(count)):
    print(experiment.submit(estimator).id, flush=True)
"""

READER = """
import sys
from trainmaster import Experiment, Workspace
experiment = Experiment(Workspace(path=sys.argv[1]), "crowd")
looked = 0
while True:
    runs = list(experiment.get_runs())
    for run in runs[:3]:
        run.get_details(); run.get_metrics(); run.get_file_names()
    looked += 1
    if looked == 3:
        print("reading", flush=True)
    if len(runs) == int(sys.argv[2]) and all(run.status == "Completed" for run in runs):
        break
"""


@pytest.mark.timeout(2000)
def test_two_submitters_and_ten_readers(workspace: Workspace, project: object, tmp_path: Path) -> None:
    ComputeTarget.create(workspace, "box", LocalCompute.configuration(nodes=4))
    source, proof = project(train=SCRIPT), tmp_path / "proof"
    base = [sys.executable, "-c"]
    submitters = [
        subprocess.Popen(
            [*base, SUBMITTER, str(workspace.path), str(source), str(proof), str(RUNS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    readers = [subprocess.Popen([*base, READER, str(workspace.path), str(2 * RUNS)]) for _ in range(10)]

    ids = [line for each in submitters for line in each.communicate(timeout=1000)[0].split()]
    assert [each.returncode for each in submitters] == [0, 0]
    assert [each.wait(timeout=1000) for each in readers] == [0] * 10
    assert len(set(ids)) == 2 * RUNS
    assert sorted(proof.read_text().split()) == sorted(ids), "a run did not run, or ran twice"
    numbers = sorted(run.number for run in workspace.experiments["crowd"].get_runs())
    assert numbers == list(range(1, 2 * RUNS + 1))
