"""Notebooks of v1's users that name a framework's estimator and no release of it; see `test_notebooks_of_users`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import end_workspace
from tests.notebooks import as_notebook, execute, give_config, printed

pytestmark = pytest.mark.timeout(900)

NOTEBOOKS = Path(__file__).with_name("notebooks_of_users") / "frameworks"
WORKSPACE = "framework-users"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = tmp_path / "home"
    monkeypatch.setenv("TRAINMASTER_HOME", str(home))
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    yield home
    end_workspace(home / "workspaces" / WORKSPACE)


@pytest.mark.parametrize(
    ("name", "release"),
    [("2019_chainer", "Chainer 5.1.0 numpy 1.1"), ("2019_pytorch", "Torch version: 1.4.0 0.5.0")],
)
def test_a_notebook(home: Path, tmp_path: Path, name: str, release: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    give_config(folder, WORKSPACE)
    notebook = as_notebook(NOTEBOOKS / f"{name}.cells")
    execute(notebook, folder)
    assert release in printed(notebook)
    assert printed(notebook).endswith("DONE\n")
