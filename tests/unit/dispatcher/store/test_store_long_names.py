"""Names that are longer than a row of an index of PostgreSQL: random, because it compresses the others."""

from __future__ import annotations

import random
import string

import pytest

from trainmaster.dispatcher.store.search import Search
from trainmaster.shared.filters import parse_filter
from trainmaster.shared.records import RunQuery

RANDOM = random.Random(7)
LONG = "".join(RANDOM.choices(string.ascii_letters + string.digits, k=8_000))
OTHER = LONG[:-1] + "!"


@pytest.fixture
def logged(store, add):
    add()
    records = [{"k": "metric", "n": name, "v": value, "t": 1.0} for name, value in ((LONG, 1), (OTHER, 2), ("m", 3))]
    store.journals.ingest("run", "0-j", 0, 1, records)
    store.journals.ingest("run", "0-j", 1, 2, [{"k": "metric", "n": LONG, "v": 5, "t": 2.0}])
    return store


def test_metrics(logged):
    assert {series.name: series.values for series in logged.metrics.read("run")} == {
        LONG: (1, 5),
        OTHER: (2,),
        "m": (3,),
    }
    assert [series.values for series in logged.metrics.read("run", OTHER)] == [(2,)]
    assert [summary.name for summary in logged.metrics.summarize("run")] == [LONG, OTHER, "m"]
    assert [rank.series.name for rank in logged.metrics.read_by_rank("run", LONG)] == [LONG]


def test_tags_and_properties(store, add):
    add(tags={LONG: "a", OTHER: "b"}, properties={LONG: OTHER})
    assert [run.id for run in store.runs.find(RunQuery(tags={LONG: "a"}))] == ["run"]
    assert store.runs.find(RunQuery(tags={LONG: "b"})) == []
    assert [run.id for run in store.runs.find(RunQuery(tags={OTHER: None}, properties={LONG: OTHER}))] == ["run"]
    store.runs.set_tags("run", {LONG: "c"})
    assert store.runs.get("run").tags == {LONG: "c", OTHER: "b"}
    store.runs.remove_tags("run", [LONG])
    assert store.runs.find(RunQuery(tags={LONG: None})) == []


def test_search(logged):
    wanted = Search(parse_filter(f'metric."{LONG}" >= 5', 0.0), columns=("id",))
    assert [row["id"] for row in logged.search.find(wanted, 1.0).rows] == ["run"]
