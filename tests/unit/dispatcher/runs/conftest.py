"""A workspace with a target of two nodes, whose agents live in the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driven_runs import AgentsInTest, Parts

from trainmaster.dispatcher.store import Store
from trainmaster.environments.kit import ensure_kit
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import TargetRecord


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to copy, because creating one takes longer than most of these tests."""
    folder = WorkspaceFolder(tmp_path_factory.mktemp("template"))
    folder.identity.write_text('{"id": "w", "name": "w"}')
    store = Store.create(folder.database)
    store.targets.put(TargetRecord("two", "test", 2, 1, 0))
    store.close()
    ensure_kit(folder.path)
    return folder.path


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Iterator[tuple[WorkspaceFolder, Store]]:
    folder = WorkspaceFolder(tmp_path)
    for name in (folder.identity.name, folder.database.name):
        shutil.copy(template / name, tmp_path / name)
    (tmp_path / "kits").symlink_to(template / "kits")
    store = Store.open(folder.database)
    yield folder, store
    store.close()


@pytest.fixture
def parts(workspace: tuple[WorkspaceFolder, Store]) -> Iterator[Parts]:
    parts = Parts(*workspace, AgentsInTest())
    yield parts
    parts.close()
