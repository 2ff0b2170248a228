"""The store on a real PostgreSQL server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.postgresql import Server, run_server

from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.records import RunRecord, Status
from trainmaster.testing import StoreConformance

UNIT_TESTS = Path(__file__).parents[1] / "unit" / "dispatcher" / "store"
# About what only a file of SQLite can do or suffer.
OF_FILES = ("sqlite", "opening", "trouble", "migrations")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as server:
        yield server


class TestPostgresql(StoreConformance):
    @pytest.fixture
    def place(self, server: Server) -> Iterator[str]:
        url = server.create_database()
        yield url
        server.drop_database(url)


@pytest.mark.timeout(900)
def test_the_unit_tests_of_the_store_pass(server: Server) -> None:
    variables = {**os.environ, "TRAINMASTER_TESTS_POSTGRESQL": str(server.folder)}
    ignored = [f"--ignore={UNIT_TESTS / f'test_store_{name}.py'}" for name in OF_FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *ignored, str(UNIT_TESTS)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-10_000:]}\n{done.stderr[-3000:]}"


@pytest.mark.parametrize("attack", ["status = 'Running', ended_at = NULL", "status = 'Running'", "ended_at = NULL"])
def test_the_database_itself_keeps_a_terminal_state(server: Server, attack: str) -> None:
    url = server.create_database()
    store = Store.create(url)
    store.runs.add(RunRecord("run", "exp", Status.FAILED, 1.0))
    store.close()
    with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match=r"never changes|ended_is_terminal"):
        connection.execute(f"UPDATE runs SET {attack}".encode())


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceException, match="cannot be used") as caught:
        Store.open(f"postgresql://me:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value) and caught.value.hint


def test_a_database_of_something_else(server: Server) -> None:
    with pytest.raises(WorkspaceException, match="not a Trainmaster database"):
        Store.open(server.create_database())
