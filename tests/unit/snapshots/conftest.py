"""A source folder and a workspace, and nothing from outside."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_limits_from_outside(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("TRAINMASTER_SNAPSHOT", "AML_SNAPSHOT", "AZUREML_GIT", "GIT_")):
            monkeypatch.delenv(name)


@pytest.fixture
def source(tmp_path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(tmp_path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder
