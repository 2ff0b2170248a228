"""The hints for exceptions that a person can do something about."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.dispatcher.runs.failure_hints import Surroundings, hint_for
from trainmaster.shared.job_spec import ContainerSpec, EnvironmentSpec, JobSpec

TQDM = "ModuleNotFoundError: No module named 'tqdm'"


def hint(*exceptions: str, code: Path = Path("/absent"), script: str = "train.py", **environment: object) -> str:
    spec = JobSpec(".", "local", script=script, environment=EnvironmentSpec(**environment))  # type: ignore[arg-type]
    return hint_for(exceptions, Surroundings(spec, code))


@pytest.mark.parametrize(
    ("exceptions", "package"),
    [
        ([TQDM], "tqdm"),
        (["ModuleNotFoundError: No module named 'sklearn'"], "scikit-learn"),
        (["ModuleNotFoundError: No module named 'cv2'"], "opencv-python-headless"),
        (["RuntimeError: no progress", TQDM], "tqdm"),
        (["ImportError: Missing optional dependency 'openpyxl'. Use pip or conda to install openpyxl."], "openpyxl"),
    ],
)
def test_a_missing_module_is_a_package_to_add(exceptions: list[str], package: str) -> None:
    told = hint(*exceptions)
    assert f"--pip {package} on the command line" in told
    assert f'pip_packages=["{package}"] in Python' in told


@pytest.mark.parametrize("module", ["tensorflow.examples", "google.cloud", "sklearn.externals.joblib"])
def test_a_missing_part_does_not_mean_a_missing_package(module: str) -> None:
    told = hint(f"ModuleNotFoundError: No module named '{module}'")
    assert told.startswith(f"'{module.partition('.')[0]}' is there, but has no '{module}'. Name the release")


def test_a_file_that_hides_a_package() -> None:
    told = hint("ModuleNotFoundError: No module named 'tensorflow.keras'; 'tensorflow' is not a package")
    assert told == "'tensorflow' is a single file here. Does a file of yours hide the package 'tensorflow'?"


@pytest.mark.parametrize("line", ["ValueError: x", "ImportError: cannot import name 'x' from 'tqdm'", ""])
def test_no_hint_where_nothing_is_known(line: str) -> None:
    assert hint(line) == ""
    assert hint() == ""


def test_in_a_python_of_the_user_it_is_installed_there() -> None:
    told = hint(TQDM, user_managed=True, interpreter="/opt/mine/bin/python")
    assert "/opt/mine/bin/python -m pip install tqdm" in told and "--pip " not in told


def test_an_image_has_its_own_packages() -> None:
    assert "image mine:1 has no module 'tqdm'" in hint(TQDM, container=ContainerSpec("mine:1"))


def test_a_module_of_the_source_folder_is_not_a_package(tmp_path: Path) -> None:
    (tmp_path / "tqdm.py").touch()
    (tmp_path / "models").mkdir()
    told = hint(TQDM, code=tmp_path, script="src/train.py")
    assert "has tqdm.py, but Python looks" in told and "PYTHONPATH=." in told
    assert "has models/" in hint("ModuleNotFoundError: No module named 'models'", code=tmp_path, script="src/train.py")
    # Beside the script it would have been found.
    assert "--pip tqdm" in hint(TQDM, code=tmp_path)
