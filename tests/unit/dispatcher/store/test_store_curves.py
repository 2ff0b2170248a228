"""Curves and sparklines: many metrics of many runs at once."""

from __future__ import annotations

import math

import pytest

from trainmaster.dispatcher.store import curves
from trainmaster.job.errors import UserErrorException


@pytest.fixture
def logged(store, add):
    """Two runs with a long and a short metric; one has values that are not numbers."""
    for run_id, factor in (("a", 1.0), ("b", 2.0)):
        add(run_id)
        rows = [{"k": "metric", "n": "loss", "v": factor * n, "t": float(n), "s": 10 * n} for n in range(300)]
        rows += [{"k": "metric", "n": "acc", "v": value, "t": 1.0} for value in (0.5, math.nan, 1)]
        rows += [{"k": "metric", "n": "words", "v": "text", "t": 1.0}]
        store.journals.ingest(run_id, "0-1-x.jsonl", 0, 1, rows[:200])
        store.journals.ingest(run_id, "1-1-x.jsonl", 0, 1, rows[200:])
    return store


def test_several_metrics_of_several_runs(logged):
    found = logged.curves.read(["b", "nothing", "a"], ["loss", "acc", "missing"], 1000, {})
    assert [(curve.run_id, curve.name) for curve in found] == [("b", "loss"), ("b", "acc"), ("a", "loss"), ("a", "acc")]
    assert found[0].values == tuple(2.0 * n for n in range(300)) and found[0].count == 300
    assert found[0].steps[:2] == (0, 10) and found[0].times[:2] == (0.0, 1.0) and found[0].index[:2] == (0, 1)
    # What is not a finite number is null, and a metric without steps has none.
    assert found[1].values == (0.5, None, 1.0) and found[1].steps == ()


def test_without_names_all_metrics_with_numbers(logged):
    assert [curve.name for curve in logged.curves.read(["a"], None, 10, {})] == ["loss", "acc"]


def test_a_long_curve_is_thinned_and_keeps_its_extremes(logged):
    (curve,) = logged.curves.read(["a"], ["loss"], 20, {})
    assert len(curve.values) <= 20 and {0.0, 299.0} <= set(curve.values) and curve.count == 300


def test_only_what_is_new(logged):
    (curve,) = logged.curves.read(["a"], ["loss"], 1000, {"a": {"loss": 298}})
    assert curve.values == (298.0, 299.0) and curve.index == (298, 299)
    (curve,) = logged.curves.read(["a"], ["loss"], 1000, {"a": {"loss": 300}})
    assert curve.values == () and curve.count == 300


def test_a_part_has_more_of_its_points(logged):
    (curve,) = logged.curves.read(["a"], ["loss"], 20, {"a": {"loss": 100}}, until={"a": {"loss": 110}})
    assert curve.values == tuple(float(n) for n in range(100, 110)) and curve.index == tuple(range(100, 110))
    (curve,) = logged.curves.read(["a"], ["loss"], 20, {"a": {"loss": 290}}, until={"a": {"loss": 999}})
    assert curve.index == tuple(range(290, 300))
    (curve,) = logged.curves.read(["a"], ["loss"], 20, {"a": {"loss": 120}}, until={"a": {"loss": 100}})
    assert curve.values == () and curve.count == 300
    first, second = logged.curves.read(
        ["a"], ["loss"], 20, {"a": {"loss": 195}}, by_rank=True, until={"a": {"loss": 205}}
    )
    assert first.index == tuple(range(195, 200)) and second.index == tuple(range(200, 205))


@pytest.mark.parametrize(("begin", "end"), [(5_000, 25_000), (100, 19_990), (70, 20_011), (64, 19_968)])
def test_a_long_part_keeps_its_extremes(store, add, begin, end):
    add("long")
    values = [0.0] * 20_011
    values[100], values[5_001], values[15_077], values[20_000] = 9.0, -3.0, 7.0, -8.0
    rows = [{"k": "metric", "n": "loss", "v": value, "t": float(n)} for n, value in enumerate(values)]
    store.journals.ingest("long", "0-1-x.jsonl", 0, 1, rows)
    (curve,) = store.curves.read(["long"], ["loss"], 60, {"long": {"loss": begin}}, until={"long": {"loss": end}})
    part = values[begin:end]
    assert len(curve.values) <= 70
    assert {min(part), max(part)} <= set(curve.values)
    assert [values[index] for index in curve.index] == list(curve.values)
    assert begin - 64 <= curve.index[0] <= begin
    assert min(end, len(values)) - 1 <= curve.index[-1] < end + 64


def test_too_many_points_are_refused(logged, monkeypatch):
    monkeypatch.setattr(curves, "MOST_VALUES", 100)
    assert logged.curves.read(["a"], None, 90, {})
    with pytest.raises(UserErrorException, match="too many"):
        logged.curves.read(["a", "b"], None, 90, {})


def test_each_rank_has_a_curve(logged):
    first, second = logged.curves.read(["a"], ["loss"], 1000, {}, by_rank=True)
    assert (first.rank, second.rank) == (0, 1) and len(first.values) + len(second.values) == 300
    first, second = logged.curves.read(["a"], ["loss"], 1000, {"a": {"loss": 250}}, by_rank=True)
    assert first.values == () and second.values[0] == 250.0


def test_sparklines(logged):
    lines = logged.curves.sketch(["a", "b"], ["loss"], 4)
    assert [(line.run_id, line.values) for line in lines] == [
        ("a", (0.0, 99.0, 199.0, 299.0)),
        ("b", (0.0, 198.0, 398.0, 598.0)),
    ]
