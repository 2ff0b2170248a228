"""`trainmaster env build` and `submit` ask for the same environment when they name the same packages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from trainmaster.cli.env import spec_of
from trainmaster.cli.parsing import parse
from trainmaster.cli.submit import job
from trainmaster.environments.accelerator import on_this_machine
from trainmaster.environments.prefix import digest


@pytest.mark.parametrize(
    "packages",
    [
        (),
        ("numpy", "pandas<3"),
        ("torch==2.13.0", "horovod"),
        ("horovod==0.28.1", "tensorflow-cpu==2.21.0", "mpi4py"),
        ("azureml-mlflow", "azureml-defaults", "numpy"),
        ("--extra-index-url https://packages.example/simple", "numpy"),
    ],
)
@pytest.mark.filterwarnings("ignore:packages of Azure's SDK")
def test_the_same_packages_are_the_same_environment(tmp_path: Path, packages: Sequence[str]) -> None:
    (tmp_path / "train.py").write_text("")
    words = [f"--pip={package}" for package in packages]
    built = spec_of(parse(["env", "build", *words])[1])
    submitted = job(parse(["submit", str(tmp_path), "train.py", *words])[1]).environment
    assert digest(on_this_machine(built)) == digest(on_this_machine(submitted))
    assert built.horovod == ("0.28.1" if any("horovod" in each for each in packages) else "")
    assert not [each for each in built.pip_packages if each.startswith(("horovod", "azureml"))]
