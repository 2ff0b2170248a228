"""A store for each test: a copy of one that is made once, because migrations take longer than most tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.postgresql import Server, empty_tables

from trainmaster.dispatcher.store import Store
from trainmaster.shared.records import RunRecord, Status

SERVER = os.environ.get("TRAINMASTER_TESTS_POSTGRESQL")
"""The folder of a PostgreSQL server's socket: then the stores are databases there (`test_store_postgresql.py`)."""


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory) -> Path | str:
    place = Server(Path(SERVER)).create_database() if SERVER else tmp_path_factory.mktemp("store") / "trainmaster.db"
    Store.create(place).close()
    return place


@pytest.fixture
def database(empty_database, tmp_path) -> Path | str:
    if SERVER:
        empty_tables(empty_database)
        return empty_database
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
