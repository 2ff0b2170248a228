"""use_gpu=True where there are no GPUs: v1's notebooks ask for them everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import ended

from trainmaster import Experiment, PyTorch, TensorFlow, Workspace
from trainmaster.shared.job_spec import load_spec


@pytest.mark.parametrize(("estimator", "package"), [(PyTorch, "torch==2.13.0"), (TensorFlow, "tensorflow-cpu==2.21.0")])
def test_the_build_for_the_cpu_is_taken(shared: Workspace, tmp_path: Path, estimator: type, package: str) -> None:
    (tmp_path / "train.py").write_text("")
    wish = estimator(source_directory=str(tmp_path), entry_script="train.py", compute_target="local", use_gpu=True)
    run = Experiment(shared, "wishes").submit(wish)
    run.cancel()
    details = ended(run)
    asked = load_spec(run._record.spec).environment
    assert (asked.accelerator, package in asked.pip_packages) == ("cpu", True)
    assert "has no GPUs: the script runs on the CPU" in str(details["warnings"])
