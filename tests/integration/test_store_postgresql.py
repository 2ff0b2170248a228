"""The store on a real PostgreSQL server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from alembic import command
from sqlalchemy import create_engine, make_url
from tests.postgresql import Server, run_server

from trainmaster.dispatcher.store import Store, migrate
from trainmaster.dispatcher.store.search import Search
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.filters import parse_filter
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


def test_a_store_of_an_older_release_is_migrated(server: Server) -> None:
    url = server.create_database()
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        config = migrate.configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, "0008")
        connection.commit()
    engine.dispose()
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO experiments VALUES (1, 'e-1', 'exp', 1.0, NULL, 1, '')")
        connection.execute(
            "INSERT INTO runs VALUES (7, 'exp_1', 1, 1, NULL, 'azureml.scriptrun', 'Completed', 1.0, 2.0, 3.0, 'kept', "
            "'', 'local', '', '', '', '', '', 'me', '', '')"
        )
        spec = json.dumps({"version": 1, "arguments": ["--lr", "0.1", "--name=" + "x" * 5000, "--quiet"]})
        connection.execute("INSERT INTO run_specs VALUES (7, %s)", (spec,))
    store = Store.open(url)
    page = store.search.find(Search(parse_filter("lr = 0.1 and quiet = true", 0.0), columns=("id", "lr")), 0.0)
    store.close()
    assert page.rows == ({"id": "exp_1", "lr": 0.1},)
    server.drop_database(url)
