from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.dispatcher.store.journals import rank_of
from trainmaster.dispatcher.store.metrics import thin
from trainmaster.dispatcher.store.points import BLOCK
from trainmaster.dispatcher.store.values import decode, encode
from trainmaster.job.errors import RunNotFoundException, UserErrorException


@pytest.fixture
def log(store, add):
    add()

    def ingest(values, name="m", batch=1000):
        for start in range(0, len(values), batch):
            offset = store.journals.get_offsets("run").get("j", 0)
            part = [
                {"k": "metric", "n": name, "v": value, "t": 10.0 + start + n, "s": start + n}
                for n, value in enumerate(values[start : start + batch])
            ]
            assert store.journals.ingest("run", "j", offset, offset + 1, part)
        return store

    return ingest


VALUES = [
    0.1,
    -0.0,
    5,
    2**53,
    2**53 + 1,
    -(2**70),
    10**400,
    True,
    False,
    "text",
    "",
    None,
    math.inf,
    -math.inf,
    [1],
    {},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_values_come_back_with_their_type(log, value):
    store = log([value])
    (series,), (summary,) = store.metrics.read("run"), store.metrics.summarize("run")
    for found in (series.values[0], summary.last):
        assert found == value and type(found) is type(value)


def test_nan_comes_back_and_is_no_extreme(log):
    store = log([math.nan, 1.0, math.nan, -2])
    (series,), (summary,) = store.metrics.read("run"), store.metrics.summarize("run")
    assert math.isnan(series.values[0]) and math.isnan(series.values[2])
    assert (summary.minimum, summary.maximum, summary.count) == (-2.0, 1.0, 4)


@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"))
)
def test_encoding_loses_nothing(value):
    found = decode(*encode(value))
    assert type(found) is type(value) and (found == value or value != value)


def test_a_series_is_whole_without_a_limit(log):
    values = [float(n % 7) for n in range(2500)]
    (series,) = log(values).metrics.read("run", "m")
    assert (series.name, series.kind, series.count) == ("m", "scalar", 2500)
    assert series.values == tuple(values)
    assert series.steps == series.index == tuple(range(2500))
    assert series.times == tuple(10.0 + n for n in range(2500))


def test_only_the_metric_asked_for(log):
    log([1], "a")
    store = log([2], "b")
    assert [series.name for series in store.metrics.read("run")] == ["a", "b"]
    assert [series.name for series in store.metrics.read("run", "b")] == ["b"]
    assert store.metrics.read("run", "nothing") == []


@pytest.mark.parametrize("count", [11, 64, 65, 1000, 12_345])
def test_a_thinned_series_keeps_ends_and_extremes(log, count):
    random.seed(count)
    values = [random.gauss(0, 1) for _ in range(count)]
    store = log(values, batch=777)
    for most in (1, 2, 3, 4, 10, 99, 100):
        (series,) = store.metrics.read("run", "m", max_points=most)
        check_thinned(series, values, most)


def check_thinned(series, values, most):
    count = len(values)
    assert series.count == count and len(series.values) <= most
    assert series.index == tuple(sorted(set(series.index)))
    assert series.values == tuple(values[n] for n in series.index) and series.steps == series.index
    assert series.index[-1] == count - 1
    if most > 1:
        assert series.index[0] == 0
    if most > 3:
        assert {min(values), max(values)} <= set(series.values)


def test_a_peak_survives_in_every_part(log):
    count, parts = 40 * BLOCK * 10, 10
    values = [0.0] * count
    peaks = [part * count // parts + 123 for part in range(parts)]
    for peak in peaks:
        values[peak] = 1.0
    (series,) = log(values, batch=10_000).metrics.read("run", "m", max_points=2 * parts + 2)
    assert [n for n, value in zip(series.index, series.values, strict=True) if value] == peaks


def test_a_thinned_series_of_texts_and_nan(log):
    (series,) = log(["x", math.nan] * 3000).metrics.read("run", "m", max_points=50)
    assert 20 < len(series.values) <= 50 and "x" in series.values


def test_batches_of_any_size_make_the_same_blocks(log):
    values = [math.sin(n) for n in range(1000)]
    log(values, "few", batch=7)
    log(values, "some", batch=37)
    store = log(values, "at once", batch=1000)
    a, b, c = (series.index for series in store.metrics.read("run", max_points=6))
    assert a == b == c
    a, b, c = ((one.minimum, one.maximum, one.last) for one in store.metrics.summarize("run"))
    assert a == b == c == (min(values), max(values), values[-1])


@pytest.mark.parametrize("most", [0, -1])
def test_a_limit_is_positive(store, add, most):
    add()
    with pytest.raises(UserErrorException, match="max_points"):
        store.metrics.read("run", max_points=most)


def test_nobody_has_no_metrics(store):
    for ask in (store.metrics.summarize, store.metrics.read, store.journals.get_offsets):
        with pytest.raises(RunNotFoundException):
            ask("nobody")


def test_thinning_is_a_plain_function():
    numbers = [3.0, 1.0, None, 2.0, 9.0, None, None, None, 4.0]
    extremes = [
        (n, number, None if number is None else n, number, None if number is None else n)
        for n, number in enumerate(numbers)
    ]
    # In the third part 4.0 is the only number; the second has two.
    assert thin(extremes, 9, 3) == [0, 1, 3, 4, 8]


@pytest.fixture
def ranked(store, add):
    """What ranks log, each from a journal of its own."""
    add()

    def ingest(rank, values, name="m"):
        journal = f"{rank}-1-0a1b2c3d.jsonl"
        offset = store.journals.get_offsets("run").get(journal, 0)
        records = [{"k": "metric", "n": name, "v": value, "t": 10.0 + n} for n, value in enumerate(values)]
        assert store.journals.ingest("run", journal, offset, offset + 1, records)
        return store

    return ingest


def test_every_point_knows_its_rank(ranked):
    ranked(0, [1, 2])
    ranked(12, [3])
    ranked("client", [4])
    store = ranked(0, [5])
    (series,) = store.metrics.read("run")
    assert (series.values, series.ranks) == ((1, 2, 3, 4, 5), (0, 0, 12, None, 0))
    (thinned,) = store.metrics.read("run", max_points=2)
    assert (thinned.values, thinned.ranks) == ((1, 5), (0, 0))


def test_every_way_of_logging_knows_its_rank(store, add):
    add()
    records = [
        {"k": "list", "n": "list", "v": [1, 2], "t": 1.0},
        {"k": "row", "n": "row", "v": {"a": 1}, "t": 1.0},
        {"k": "table", "n": "table", "v": {"a": [1, 2]}, "t": 1.0},
        {"k": "image", "n": "image", "v": "plot.png", "t": 1.0},
        {"k": "child", "id": "below", "t": 1.0},
        {"k": "metric", "n": "m", "v": 1, "t": 1.0, "r": "below"},
    ]
    assert store.journals.ingest("run", "2-77-0a1b2c3d.jsonl", 0, 1, records)
    assert {series.name: series.ranks for series in store.metrics.read("run")} == {
        "list": (2, 2),
        "row": (2,),
        "table": (2, 2),
        "image": (2,),
    }
    assert store.metrics.read("below")[0].ranks == (2,)


def test_each_rank_on_its_own(ranked):
    ranked(1, [5.0, 1.0])
    ranked(0, [2.0])
    ranked("client", [9.0])
    ranked(10, ["text"], name="other")
    store = ranked(1, [3.0])
    found = store.metrics.read_by_rank("run")
    assert [(each.rank, each.summary.name, each.series.values, each.series.index) for each in found] == [
        (None, "m", (9.0,), (3,)),
        (0, "m", (2.0,), (2,)),
        (1, "m", (5.0, 1.0, 3.0), (0, 1, 4)),
        (10, "other", ("text",), (0,)),
    ]
    summary = found[2].summary
    assert (summary.count, summary.last, summary.minimum, summary.maximum) == (3, 3.0, 1.0, 5.0)
    assert [each.rank for each in store.metrics.read_by_rank("run", "other")] == [10]
    assert store.metrics.read_by_rank("run", "nothing") == []


def test_each_rank_is_thinned_on_its_own(ranked):
    ranked(0, [0.0] * 500 + [7.0] + [0.0] * 499)
    store = ranked(1, [float(n) for n in range(1000)])
    zero, one = (each.series for each in store.metrics.read_by_rank("run", max_points=20))
    assert zero.count == one.count == 1000 and len(zero.values) <= 20 and len(one.values) <= 20
    assert 7.0 in zero.values and set(zero.ranks) == {0} and zero.index[0] == 0 and zero.index[-1] == 999
    assert (one.values[0], one.values[-1], one.index[0], one.index[-1]) == (0.0, 999.0, 1000, 1999)
    (last,) = (each.series for each in store.metrics.read_by_rank("run", max_points=1) if each.rank == 1)
    assert last.values == (999.0,)
    with pytest.raises(UserErrorException):
        store.metrics.read_by_rank("run", max_points=0)


@pytest.mark.parametrize(
    ("journal", "rank"),
    [("0-1-a.jsonl", 0), ("17-1-a.jsonl", 17), ("client-1-a.jsonl", None), ("j", None), ("9" * 10 + "-1-a", None)],
)
def test_a_journal_is_named_by_its_rank(journal, rank):
    assert rank_of(journal) == rank
