from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.dispatcher.store import Store, schema
from trainmaster.job.errors import WorkspaceException


def state(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def change(database: Path, statement: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(statement)
    connection.close()


def test_a_new_store_is_one_file_for_its_owner(tmp_path):
    path = tmp_path / "odd name %20 #?.db"
    store = Store.create(path)
    store.facts.put("a", 1)
    store.close()
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o077 == 0
    again = Store.open(path)
    assert again.facts.get("a") == 1
    again.close()


def test_nothing_is_made_over_something(database):
    before = state(database.parent)
    with pytest.raises(WorkspaceException, match="exists already"):
        Store.create(database)
    assert state(database.parent) == before


def test_nothing_is_made_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(WorkspaceException, match="cannot be created"):
        Store.create(tmp_path / "nowhere" / "trainmaster.db")


def test_a_failed_making_leaves_nothing(tmp_path, monkeypatch):
    from trainmaster.dispatcher.store import migrate

    monkeypatch.setattr(migrate, "LOCATION", tmp_path / "nowhere")
    with pytest.raises(WorkspaceException):
        Store.create(tmp_path / "trainmaster.db")
    assert list(tmp_path.iterdir()) == []


def test_how_the_file_is_used(store):
    with store._database.write() as connection:
        driver = connection.connection.driver_connection
        pragmas = [
            driver.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert pragmas == ["wal", 2, 1, 10_000]


def test_opening_imports_no_alembic(database):
    code = (
        "import sys, pathlib\nfrom trainmaster.dispatcher.store import Store\n"
        f"Store.open(pathlib.Path({str(database)!r})).close()\nsys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(WorkspaceException, match="does not exist"):
        Store.open(tmp_path / "trainmaster.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(WorkspaceException, match="cannot be read"):
        Store.open(tmp_path)


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def root_of(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    page, size = connection.execute(
        "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = ?", (table,)
    ).fetchone()
    connection.close()
    return (page - 1) * size


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello " * 1000),
    "short": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "last byte missing": lambda path: os.truncate(path, path.stat().st_size - 1),
    "head": lambda path: overwrite(path, 0, b"\xff" * 16),
    "schema": lambda path: overwrite(path, 100, b"\xff" * 3000),
    "runs": lambda path: overwrite(path, root_of(path, "runs"), b"\xff" * 4096),
    "metrics": lambda path: overwrite(path, root_of(path, "metrics"), os.urandom(4096)),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "random": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
    "another program's": lambda path: (path.unlink(), change(path, "CREATE TABLE t (a)")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_not_touched(database, damage):
    DAMAGES[damage](database)
    before = state(database.parent)
    with pytest.raises(WorkspaceException) as caught:
        Store.open(database)
    assert str(database) in caught.value.headline and caught.value.cause and caught.value.hint
    assert state(database.parent) == before


def test_a_damaged_file_with_a_log_is_not_touched(store, add, database, tmp_path):
    add()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{database}{suffix}", crashed)
    overwrite(crashed / database.name, 0, b"\xff" * 100)
    before = state(crashed)
    with pytest.raises(WorkspaceException, match="damaged"):
        Store.open(crashed / database.name)
    assert state(crashed) == before


@pytest.mark.parametrize("suffixes", [("", "-wal", "-shm"), ("", "-wal")])
def test_after_a_crash_nothing_is_lost(store, add, database, tmp_path, suffixes):
    kept = add()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in suffixes:
        shutil.copy(f"{database}{suffix}", crashed)
    again = Store.open(crashed / database.name)
    assert again.runs.get("run") == kept
    again.close()
    assert [path.name for path in crashed.iterdir()] == [database.name]


def test_a_newer_store_is_refused(database):
    change(database, "UPDATE alembic_version SET version_num = '9999'")
    before = state(database.parent)
    with pytest.raises(WorkspaceException, match="made by a newer Trainmaster") as caught:
        Store.open(database)
    assert "9999" in caught.value.cause and "upgrade" in caught.value.hint
    assert state(database.parent) == before


def test_the_cost_of_opening_does_not_grow(database):
    """The looks before opening are all of the first rows: no statement scans."""
    steps = []
    connection = sqlite3.connect(database)
    connection.set_progress_handler(lambda: steps.append(1), 100)
    for table in schema.metadata.tables:
        connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()
    connection.close()
    assert len(steps) < 20
