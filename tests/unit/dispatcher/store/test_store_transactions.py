"""Methods of repositories inside other transactions."""

from __future__ import annotations

import threading

import pytest

from trainmaster.shared.records import RunRecord, Status


def run(run_id: str) -> RunRecord:
    return RunRecord(run_id, "exp", Status.QUEUED, 1.0)


def test_a_write_inside_a_write_is_undone_with_it(store):
    with pytest.raises(RuntimeError, match="on purpose"), store._database.write():
        store.runs.add(run("a"))
        store.facts.put("key", 1)
        assert store.runs.get("a") is not None
        raise RuntimeError("on purpose")
    assert store.runs.get("a") is None and store.facts.get("key") is None


def test_a_read_inside_a_read_sees_the_same_state(store):
    def write() -> None:
        store.runs.add(run("a"))

    with store._database.read():
        assert store.runs.get("a") is None
        writer = threading.Thread(target=write)
        writer.start()
        writer.join()
        assert store.runs.get("a") is None
    assert store.runs.get("a") is not None


def test_a_write_inside_a_read_is_refused(store):
    with store._database.read(), pytest.raises(RuntimeError, match="cannot contain a write"):
        store.runs.add(run("a"))
    store.runs.add(run("a"))
