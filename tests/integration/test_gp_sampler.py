"""Bayesian sampling by a Gaussian process, with the torch and scipy that it needs.

They are in the environment of a run, which asks the sampler itself.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.conftest import ended

import trainmaster
from trainmaster import Estimator, Experiment, Workspace
from trainmaster.shared.folders import WorkspaceFolder

pytestmark = pytest.mark.timeout(900)

HERE = Path(__file__).parent
RANDOM = 10


def test_the_gp_sampler_learns_and_repeats_itself(frameworks: Workspace, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    shutil.copy(HERE / "tuning_programs" / "ask_gp.py", tmp_path / "source" / "ask_gp.py")
    estimator = Estimator(
        str(tmp_path / "source"),
        entry_script="ask_gp.py",
        script_params={str(Path(trainmaster.__file__).parent.parent): ""},
        compute_target="local",
        pip_packages=["torch==2.13.0", "scipy", "optuna>=5,<6"],
        environment_variables={"OMP_NUM_THREADS": "1"},
    )
    run = Experiment(frameworks, "gp").submit(estimator)
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    log = WorkspaceFolder(frameworks.path).run(run.id).logs / "70_driver_log.txt"
    answer = json.loads(log.read_text().splitlines()[-1])
    assert answer["modules"] == ["optuna", "scipy", "torch"]
    losses = answer["losses"]
    # It begins at random, and then looks where it is good.
    assert min(losses[RANDOM:]) < min(losses[:RANDOM]) and min(losses) < 0.05
    first, second = answer["twice"]
    assert first == second
    for found in [*answer["parameters"], first, answer["with others going"]]:
        assert set(found) == {"--x", "--lr", "--kind"}
        assert 0 <= found["--x"] <= 1 and 0 < found["--lr"] <= 1 and found["--kind"] in ("good", "bad")
