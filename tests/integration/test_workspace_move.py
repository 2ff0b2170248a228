"""`trainmaster workspace move`: a workspace between a file and PostgreSQL, whole, both ways."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import end_workspace
from tests.postgresql import Server, run_server

from trainmaster import Experiment, Model, Workspace
from trainmaster.dispatcher.store import copying, opening, schema
from trainmaster.shared.database_address import read_address
from trainmaster.shared.folders import WorkspaceFolder


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.create_database()


@pytest.fixture
def filled(workspace: Workspace, project: Callable[..., Path], tmp_path: Path) -> Workspace:
    """A workspace with runs, metrics of all kinds, tags, a child, a model, and a deleted run at the end."""
    run = Experiment(workspace, "first").start_logging()
    run.log_list("loss", [0.5, -0.0, 3, float("inf"), float("nan"), 2**70])
    run.log_row("row", x=1, y="ü")
    run.tag("größe", "ö")
    run.child_run("child").complete()
    run.complete()
    weights = tmp_path / "weights.bin"
    weights.write_bytes(b"123")
    Model.register(workspace, str(weights), "weights", tags={"a": "b"})
    last = Experiment(workspace, "second").start_logging()
    last.complete()
    workspace.connection.call("runs.delete", run_ids=[last.id])
    end_workspace(workspace.path)
    return workspace


def move(workspace: Workspace, to: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "trainmaster", "workspace", "move", "--workspace", str(workspace.path), "--json"]
    words += ["--to", "sqlite" if to == "sqlite" else "-"]
    return subprocess.run(words, input=to + "\n", capture_output=True, text=True, check=False)


def content_of(place: Any) -> tuple[dict[str, copying.Content], dict[str, int]]:
    """Every row, and the highest number that was ever given in each table."""
    found, numbers = {}, {}
    with closing(opening.open_database(place)) as database, database.read() as connection:
        for table in schema.metadata.sorted_tables:
            found[table.name] = copying.Content()
            for rows in copying.read_rows(connection, table):
                found[table.name] = copying.add_rows(found[table.name], rows)
            if table.autoincrement_column is not None:
                numbers[table.name] = copying.find_highest(connection, table.autoincrement_column)
    return found, numbers


def test_there_and_back(filled: Workspace, url: str) -> None:
    folder = WorkspaceFolder(Path(filled.path))
    original = content_of(folder.database)
    assert original[0]["metric_points"].count > 6 and original[1]["runs"] > original[0]["runs"].count

    done = move(filled, url)
    assert done.returncode == 0, done.stdout
    told = json.loads(done.stdout)
    assert told["database"] == "postgresql" and Path(told["kept"]).is_file()
    assert not folder.database.exists()
    assert json.loads(folder.identity.read_text())["database"] == "postgresql"
    assert content_of(read_address(folder)) == original
    # Without statistics a search may take a hundred times as long.
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT DISTINCT tablename FROM pg_stats WHERE schemaname LIKE 'trainmaster_%'"
        ).fetchall()
    assert {"runs", "metrics", "metric_points", "run_labels"} <= {name for (name,) in names}

    # Numbers go on where they were, and everything is usable.
    run = Experiment(filled, "third").start_logging()
    run.log("x", 1)
    run.complete()
    assert run.number == 1 and filled.models["weights"].version == 1
    end_workspace(filled.path)
    there = content_of(read_address(folder))
    assert there[1]["runs"] == original[1]["runs"] + 1

    done = move(filled, "sqlite")
    assert done.returncode == 0, done.stdout
    assert not folder.database_address.exists() and "database" not in json.loads(folder.identity.read_text())
    assert content_of(folder.database) == there
    with closing(sqlite3.connect(folder.database)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []

    assert move(filled, url).returncode == 0
    assert content_of(read_address(folder)) == there


def test_refused_while_a_run_is_active(workspace: Workspace, url: str) -> None:
    run = Experiment(workspace, "first").start_logging()
    done = move(workspace, url)
    assert done.returncode != 0 and run.id in done.stdout
    run.complete()
    assert move(workspace, url).returncode == 0


@pytest.mark.parametrize("to", ["sqlite", "nowhere"])
def test_a_move_that_cannot_be_made(filled: Workspace, tmp_path: Path, to: str) -> None:
    before = content_of(WorkspaceFolder(Path(filled.path)).database)
    done = move(filled, f"postgresql://me:hunter2@/db?host={tmp_path}" if to == "nowhere" else to)
    assert done.returncode != 0 and "hunter2" not in done.stdout + done.stderr
    assert content_of(WorkspaceFolder(Path(filled.path)).database) == before


def test_a_copy_that_differs_is_not_used(filled: Workspace, server: Server, url: str) -> None:
    """Somebody changes the copy before it is compared: a trigger drops a row."""
    folder = WorkspaceFolder(Path(filled.path))
    with closing(opening.open_database(folder.database)) as source:
        target = opening.create_database(url)
        with psycopg.connect(url) as connection:
            connection.execute(
                "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN IF NEW.idx = 2 THEN RETURN NULL; END IF; RETURN NEW; END $$;"
                "CREATE TRIGGER lose BEFORE INSERT ON metric_points FOR EACH ROW EXECUTE FUNCTION lose()"
            )
        expected = copying.copy(source, target, lambda *_: None)
        with pytest.raises(Exception, match="metric_points differs"):
            copying.verify(target, expected, lambda *_: None)
        target.close()


@pytest.mark.parametrize("direction", ["there", "back"])
def test_a_killed_move_leaves_the_old_database(filled: Workspace, url: str, direction: str) -> None:
    """Killed at every step it tells of; then it is repeated."""
    folder = WorkspaceFolder(Path(filled.path))
    if direction == "back":
        assert move(filled, url).returncode == 0
    to, place = (url, folder.database) if direction == "there" else ("sqlite", read_address(folder))
    before = content_of(place)
    for kill_after in (1, 6, 12, 20, 30):
        words = [sys.executable, "-m", "trainmaster.dispatcher.database_command", "move", str(folder.path)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            process.stdin.write(to + "\n")
            process.stdin.close()
            for _ in range(kill_after):
                process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
        if process.returncode != -signal.SIGKILL or folder.database_address.exists() == (direction == "there"):
            break
        assert content_of(place) == before
    else:
        assert move(filled, to).returncode == 0
    now = read_address(folder) or folder.database
    assert content_of(now) == before
