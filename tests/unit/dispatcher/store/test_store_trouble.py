"""What the disk and other programs do to a store in use."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

from trainmaster.dispatcher.store import Store, sqlite
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.records import RunQuery, RunRecord, Status


def test_a_full_disk_is_said_and_survived(store, add):
    kept = add()
    database = store._database
    with database.write() as writer:
        (pages,) = writer.connection.driver_connection.execute("PRAGMA page_count").fetchone()
    big = RunRecord("big", "exp", Status.QUEUED, 1.0, spec="x" * 1_000_000)
    records = [{"k": "metric", "n": "m", "v": n, "t": 1.0} for n in range(10_000)]
    insert, ingest = lambda: store.runs.add(big), lambda: store.journals.ingest("run", "j", 0, 1, records)
    for fill, connected in ((insert, database.write), (ingest, database.stream)):
        with connected() as writer:
            driver = writer.connection.driver_connection
        driver.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(WorkspaceException, match="disk is full") as caught:
            fill()
        assert caught.value.hint
        assert store.runs.find(RunQuery()) == [kept]
    assert store.journals.get_offsets("run") == {}
    assert store.runs.add(big).number == 2 and store.journals.ingest("run", "j", 0, 1, records)


def test_a_lock_is_waited_for_said_and_survived(database, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    store = Store.open(database)
    store.facts.put("a", 1)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(WorkspaceException, match="locked by another program"):
            store.facts.put("a", 2)
        assert store.facts.get("a") == 1
        other.execute("ROLLBACK")
    store.facts.put("a", 3)
    assert store.facts.get("a") == 3
    store.close()


def test_damage_met_in_use_is_said(store, database, add):
    store.runs.add_many(RunRecord(f"r{n}", "exp", Status.QUEUED, 1.0, description="x" * 300) for n in range(500))
    store.close()
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size // 2 - 4096))
    with pytest.raises(WorkspaceException, match="damaged"):
        damaged = Store.open(database)
        try:
            damaged.runs.find(RunQuery(limit=1000))
        finally:
            damaged.close()


def test_a_file_that_vanished_is_not_made_anew(store, database):
    store.close()
    database.unlink()
    with pytest.raises(WorkspaceException, match="cannot be opened"):
        store.runs.get("run")
    assert not database.exists()


def test_readers_see_whole_batches_while_one_writes(store, add):
    add()
    batch = [{"k": "metric", "n": name, "v": 1.0, "t": 1.0} for name in "ab" for _ in range(50)]
    wrong, done = [], threading.Event()

    def read():
        while not done.is_set():
            a, b = ([series.count for series in store.metrics.read("run")] or [0, 0])[:2]
            if a != b or a % 50:
                wrong.append((a, b))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for n in range(20):
        store.journals.ingest("run", "j", n, n + 1, batch)
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == [] and store.metrics.summarize("run")[0].count == 1000
