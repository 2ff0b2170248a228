"""A store for each test: a copy of one that is made once, because migrations take longer than most tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import RunRecord, Status


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("store") / "trainmaster.db"
    Store.create(path).close()
    return path


@pytest.fixture
def database(empty_database, tmp_path) -> Path:
    return Path(shutil.copy(empty_database, tmp_path / "trainmaster.db"))


@pytest.fixture
def store(database):
    store = Store.open(database)
    yield store
    store.close()


@pytest.fixture
def add(store):
    """Insert a run with the fields that matter."""

    def insert(run_id="run", experiment="exp", status=Status.RUNNING, **fields) -> RunRecord:
        fields.setdefault("created_at", 100.0)
        return store.runs.add(RunRecord(run_id, experiment, status, **fields))

    return insert
