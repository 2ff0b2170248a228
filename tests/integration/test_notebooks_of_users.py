"""Notebooks and scripts as v1's users wrote them, run unchanged in a real Jupyter kernel.

They were written from a description of v1 alone, without this project in mind: no versions, no folders made, defaults
everywhere, a conda file with Python 3.6.2. Data is generated, because nothing may be fetched but packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import end_workspace
from tests.left_out import leave_out
from tests.notebooks import as_notebook, execute, give_config, printed

from trainmaster.environments.pythons import all_pythons

pytestmark = pytest.mark.timeout(900)

NOTEBOOKS = Path(__file__).with_name("notebooks_of_users")
WORKSPACE = "users"
# They install packages of their time, which only a Python of that time has.
OLD_PACKAGES = ("2018_estimator_sweep", "2019_sklearn_iris", "2020_environments")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One workspace for all: environments are built once."""
    home = tmp_path_factory.mktemp("users") / "home"
    yield home
    end_workspace(home / "workspaces" / WORKSPACE)


@pytest.fixture
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINMASTER_HOME", str(home))
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    place = tmp_path / "mine"
    place.mkdir()
    return place


@pytest.mark.parametrize("name", sorted(path.stem for path in NOTEBOOKS.glob("*.cells")))
def test_a_notebook(folder: Path, name: str) -> None:
    if name in OLD_PACKAGES and not {"3.6", "3.7", "3.8"} & set(all_pythons()):
        leave_out("there is no Python 3.6, 3.7 or 3.8 on this machine")
    give_config(folder, WORKSPACE, "aml_config" if name.startswith("2018") else ".azureml")
    notebook = as_notebook(NOTEBOOKS / f"{name}.cells")
    execute(notebook, folder)
    assert printed(notebook).endswith("DONE\n")


def test_a_script_of_a_build_machine(folder: Path) -> None:
    project = folder / "project"
    shutil.copytree(NOTEBOOKS / "project_2020", project)
    give_config(folder, WORKSPACE)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "submit.py", "--wait"]
    done = subprocess.run(command, cwd=project, env=os.environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "no cluster yet: ComputeTargetNotFound" in done.stdout
    assert "rank 0 of 2 sum 45 secret 6" in done.stdout
    assert "Completed {'rank': [0, 1], 'total': 45}" in done.stdout
    assert done.stdout.endswith("model in model/model ['sum.json']\n")
