"""An example of `examples/`, run on another target with nothing changed but its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from trainmaster import Experiment, Workspace
from trainmaster.sdk.run.run import Run

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name: str, experiment: str, target: str, workspace: Workspace, home: Path, place: Path) -> Run:
    """The run of the example's own program, which has ended well on `target` and has learned something."""
    folder = place / name
    shutil.copytree(EXAMPLES / name, folder)
    program = folder / "submit.py"
    text = program.read_text()
    changed = text.replace('compute_target="local"', f'compute_target="{target}"')
    assert changed != text
    program.write_text(changed)
    environment = {**os.environ, "TRAINMASTER_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = next(Experiment(workspace, experiment).get_runs())
    details = run.get_details()
    assert details["status"] == "Completed", details.get("error")
    assert details["target"] == target
    metrics = run.get_metrics()
    if "steps" in metrics:
        # Workers of a parameter server do not wait for each other: one may find that the other has learned it all.
        assert metrics["steps"] == 800 and metrics["accuracy"] > 0.7
    elif "loss" in metrics:
        assert metrics["loss"][-1] < metrics["loss"][0] / 2
    return run
