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
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, make_url
from tests.postgresql import Server, run_server

from trainmaster.dispatcher.store import Store, migrate, schema
from trainmaster.dispatcher.store.search import Search
from trainmaster.dispatcher.store.sessions import make_engine
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.database_address import DatabaseAddress
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


FIRST_ROWS = """
INSERT INTO experiments VALUES (1, 'e-1', 'exp', 1.0, NULL, 1, '');
INSERT INTO runs VALUES (7, 'exp_1', 1, 1, NULL, 'azureml.scriptrun', 'Completed', 1.0, 2.0, 3.0, 'kept', '', 'local',
    '', '', '', '', '', 'me', '{"a":"b"}', '');
INSERT INTO run_labels VALUES (7, 0, 'a', 'b');
INSERT INTO metrics VALUES (1, 7, repeat('loss', 500), 'scalar', 1, 0.5, 0.5, 0.5, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO metric_points VALUES (1, 0, 0.5, 0, NULL, NULL, 2.5);
"""
REVISIONS = [f"{number:04}" for number in range(1, int(schema.REVISION)) if number != 4]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_store_of_each_older_release_is_migrated(server: Server, revision: str) -> None:
    url = server.create_database()
    address = DatabaseAddress(url, "older")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA older")
    engine = make_engine(address)
    for step in ("0001", revision):
        with engine.connect() as connection:
            config = migrate.configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, step)
            if step == "0001":
                connection.exec_driver_sql(FIRST_ROWS)
            connection.commit()
        if revision == "0001":
            break
    store = Store.open(address)
    try:
        run = store.runs.get("exp_1")
        assert run is not None and run.display_name == "kept" and run.tags == {"a": "b"}
        assert [series.values for series in store.metrics.read("exp_1", "loss" * 500)] == [(0.5,)]
        with engine.connect() as connection:
            # Alembic compares what `ddl_if` leaves out on PostgreSQL, too.
            opts = {"compare_type": True, "include_object": lambda _, name, *__: name != "fk_metric_points_metric_id"}
            context = MigrationContext.configure(connection, opts=opts)
            assert compare_metadata(context, schema.metadata) == []
    finally:
        store.close()
        server.drop_database(url)


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
    # What the migration filled has statistics: without them a search may take a hundred times as long.
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT DISTINCT tablename FROM pg_stats WHERE schemaname = 'public'").fetchall()
    assert {"runs", "arguments"} <= {name for (name,) in names}
    server.drop_database(url)
