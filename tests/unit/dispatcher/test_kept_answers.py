from __future__ import annotations

import pytest

from trainmaster.dispatcher.api.operations import list_operations
from trainmaster.dispatcher.kept_answers import KeptAnswers
from trainmaster.dispatcher.operation import is_from_store


class Changing:
    """The version of a store."""

    def __init__(self) -> None:
        self.version = 0
        self.kept = KeptAnswers(lambda: self.version)


def test_an_answer_is_right_until_the_store_changes() -> None:
    store = Changing()
    store.kept.keep(b"list", b"[1]", version=0)
    assert store.kept.find(b"list") == b"[1]"
    store.version += 1
    assert store.kept.find(b"list") is None
    store.kept.keep(b"list", b"[1, 2]", version=1)
    assert store.kept.find(b"list") == b"[1, 2]"


def test_an_answer_from_before_a_change_is_not_kept() -> None:
    store = Changing()
    store.version += 1
    store.kept.keep(b"list", b"[]", version=0)
    assert store.kept.find(b"list") is None


def test_memory_is_limited() -> None:
    store = Changing()
    for number in range(200):
        store.kept.keep(b"%d" % number, bytes(100_000), version=0)
    assert store.kept.find(b"0") is None
    assert store.kept.find(b"199") is not None
    store.kept.keep(b"large", bytes(1_000_000), version=0)
    assert store.kept.find(b"large") is None


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, True),
        ({"filter": "lr < 0.1 and status = Completed", "order": "metric.loss", "columns": ["id", "tags"]}, True),
        ({"filter": "created > -7d"}, False),
        ({"filter": "created > Yesterday"}, False),
        ({"filter": "duration > 60"}, False),
        ({"order": "duration desc"}, False),
        ({"columns": ["id", "duration"]}, False),
        ({"columns": ["id", "waiting_for"]}, False),
    ],
)
def test_a_search_that_depends_on_the_time_or_the_queue_is_not_kept(args: dict[str, object], expected: bool) -> None:
    assert is_from_store(list_operations()["runs.search"], args, {}) is expected


@pytest.mark.parametrize(("status", "expected"), [("Completed", True), ("Queued", False), ("Running", False)])
def test_a_run_is_kept_once_it_has_ended(status: str, expected: bool) -> None:
    operations = list_operations()
    assert is_from_store(operations["runs.get"], {}, {"status": status}) is expected
    assert is_from_store(operations["runs.list"], {}, [{"status": "Failed"}, {"status": status}]) is expected
    assert not is_from_store(operations["status"], {}, {})
