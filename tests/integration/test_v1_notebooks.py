"""Notebooks in the manner of v1's documents of each era, run as they are in a real Jupyter kernel.

They are kept as Python files with a `# %%` line before each cell, which can be read and compared.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from tests.conftest import end_workspace
from tests.notebooks import as_notebook, execute, printed

pytestmark = pytest.mark.timeout(900)

NOTEBOOKS = Path(__file__).with_name("v1_notebooks")
WORKSPACE = "v1-notebooks"


@pytest.fixture(scope="module")
def home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One workspace for all notebooks, which the first one makes by opening it: environments are built once."""
    home = tmp_path_factory.mktemp("notebooks") / "home"
    yield home
    end_workspace(home / "workspaces" / WORKSPACE)


@pytest.fixture
def folder(tmp_path: Path, home_of_all: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's folder with notebooks, scripts and the config file that the portal gave to download."""
    place = tmp_path / "v1"
    shutil.copytree(NOTEBOOKS, place)
    identity = {"subscription_id": "0000-1111", "resource_group": "lab", "workspace_name": WORKSPACE}
    config = place / ".azureml" / "config.json"
    config.parent.mkdir()
    config.write_text(json.dumps(identity))
    monkeypatch.setenv("TRAINMASTER_HOME", str(home_of_all))
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    return place


def shown(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(output.get("data", {}).get("text/html", "") for output in outputs)


@pytest.mark.parametrize("name", ["october_2018", "may_2019", "tuning_2019", "september_2020", "deploying_2019"])
def test_a_notebook_of(folder: Path, name: str) -> None:
    notebook = as_notebook(folder / f"{name}.py")
    assert len(notebook.cells) > 5
    execute(notebook, folder)
    if name == "september_2020":
        assert "<th>Details Page</th>" in shown(notebook)
    if name == "tuning_2019":
        # The widget shows how the sweep ended: a picture, and a table of its four trials.
        assert "parallel coordinates of tuning-2019" in shown(notebook) and shown(notebook).count("<tr") == 5
    # The last cell asserts what the notebook came for; without it nothing would have been tried.
    assert printed(notebook).endswith("DONE\n")
    assert not [
        output for cell in notebook.cells for output in cell.get("outputs", ()) if output.output_type == "error"
    ]
