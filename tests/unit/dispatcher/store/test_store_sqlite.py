"""What only a file of SQLite shows: query plans, and its own constraints."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from trainmaster.shared.records import TERMINAL, RunQuery
from trainmaster.testing import StoreConformance


class TestSqlite(StoreConformance):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "trainmaster.db"


def test_active_runs_are_found_through_their_own_index(store, database):
    with sqlite3.connect(database) as connection:
        plan = connection.execute("EXPLAIN QUERY PLAN SELECT * FROM runs WHERE ended_at IS NULL ORDER BY seq")
        assert "ix_runs_active" in str(plan.fetchall())


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_the_database_itself_keeps_a_terminal_state(store, add, database, status):
    add(status=status)
    with sqlite3.connect(database) as connection:
        for attack in ("status = 'Running', ended_at = NULL", "status = 'Running'", "ended_at = NULL"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"UPDATE runs SET {attack}")


def test_a_page_is_one_query(store, add):
    for n in range(50):
        add(f"r{n}", tags={"a": n, "b": 1}, properties={"p": str(n)})
    counted = []
    with store._database.statement() as connection:
        driver = connection.connection.driver_connection
        driver.set_trace_callback(counted.append)
    assert len(store.runs.find(RunQuery(limit=50, experiment="exp", tags={"b": 1}))) == 50
    driver.set_trace_callback(None)
    assert len(counted) == 1


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, "ix_runs_top"),
        ({"experiment": "exp"}, "ix_runs_experiment_top"),
        ({"experiment": "exp", "include_children": True}, "ix_runs_experiment"),
        ({"parent_id": "a"}, "ix_runs_parent"),
        ({"target": "gpu", "include_children": True}, "ix_runs_target"),
        ({"tags": {"a": 1}, "include_children": True}, "ix_run_labels_value"),
        ({"statuses": ("Queued",), "include_children": True}, "ix_runs_active"),
    ],
)
def test_lists_walk_an_index_and_never_sort(store, query, index):
    """What makes the newest hundred of many as fast as of few."""
    sent = []
    with store._database.statement() as connection:
        driver = connection.connection.driver_connection
        driver.set_trace_callback(sent.append)
    store.runs.find(RunQuery(**query))
    driver.set_trace_callback(None)
    plan = str(driver.execute("EXPLAIN QUERY PLAN " + sent[0]).fetchall())
    assert index in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan or index == "ix_runs_active"
