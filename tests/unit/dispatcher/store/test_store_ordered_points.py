"""Values as MLflow's clients log them, compared with a plain model of what MLflow's own database does."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.dispatcher.store.histories import choose_sample
from trainmaster.dispatcher.store.search import Search
from trainmaster.shared.filters import parse_filter

LARGEST = 1.7976931348623157e308

Logged = tuple[float, int, int]
"""Value, step, milliseconds."""


@pytest.fixture
def log(store, add):
    """Log batches of points of one metric to a new run."""
    numbers = iter(range(10_000))

    def ingest(*batches: list[Logged], name="loss"):
        run_id = f"run{next(numbers)}"
        add(run_id)
        for start, batch in enumerate(batches):
            record = {"k": "points", "v": [[name, *point] for point in batch]}
            assert store.journals.ingest(run_id, "mlflow.jsonl", start, start + 1, [record])
        return run_id

    return ingest


def order(point: Logged) -> tuple[int, int, float]:
    value, step, time = point
    return step, time, 0.0 if math.isnan(value) else max(-LARGEST, min(LARGEST, value))


def identify(point: Logged) -> tuple[int, int, str]:
    return point[1], point[2], repr(point[0])


def keep_new(batches: list[list[Logged]]) -> list[Logged]:
    return list({identify(point): point for batch in batches for point in reversed(batch)}.values())


def plain(point: Logged) -> tuple[int, int, float | None]:
    value, step, time = point
    return time, step, None if math.isnan(value) else value


def last_of(store, run_id):
    (summary,) = store.metrics.summarize(run_id)
    return summary.last


points = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.5, -2.0, math.nan, math.inf, -math.inf]),
        st.sampled_from([-3, 0, 1, 2, 2**63 - 1, -(2**63)]),
        st.sampled_from([0, 1, 2, 1_700_000_000_123]),
    ),
    min_size=1,
    max_size=6,
)


@given(st.lists(points, min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_histories_and_last_values_are_those_of_mlflow(store, log, batches):
    run_id = log(*batches)
    kept = keep_new(batches)
    found = store.histories.read(run_id, "loss")
    assert sorted(map(repr, found)) == sorted(repr(plain(point)) for point in kept)
    keys = [(time, step, 0.0 if number is None else number) for time, step, number in found]
    assert keys == sorted(keys)
    highest = max(map(order, kept))
    last = last_of(store, run_id)
    assert order((last, highest[0], highest[1])) == highest
    (summary,) = store.metrics.summarize(run_id)
    assert summary.count == len(kept)
    pages = [store.histories.read(run_id, "loss", offset, 2) for offset in range(0, len(kept), 2)]
    assert repr([point for page in pages for point in page]) == repr(found)


def test_an_earlier_step_does_not_become_the_last_value(store, log):
    run_id = log([(5.0, 10, 100)], [(1.0, 3, 200), (2.0, 4, 300)])
    assert last_of(store, run_id) == 5.0
    (series,) = store.metrics.read(run_id)
    assert series.values == (5.0, 1.0, 2.0) and series.steps == (10, 3, 4)


def test_a_later_batch_goes_on_from_a_last_value_that_is_not_the_newest(store, log):
    run_id = log([(5.0, 10, 100)], [(1.0, 3, 200)], [(2.0, 9, 300)], [(7.0, 10, 101)], [(8.0, 0, 1)])
    assert last_of(store, run_id) == 7.0


def test_the_same_point_is_kept_once_wherever_it_comes(store, log):
    run_id = log(
        [(1.0, 0, 1), (1.0, 0, 1), (2.0, 5, 1)], [(1.0, 0, 1)], [(2.0, 5, 1), (math.nan, 5, 1)], [(math.nan, 5, 1)]
    )
    assert store.histories.read(run_id, "loss") == [(1, 0, 1.0), (1, 5, None), (1, 5, 2.0)]


def test_runs_are_found_by_the_last_value(store, log):
    high, low = log([(5.0, 10, 100)], [(1.0, 3, 200)]), log([(1.0, 10, 100)], [(5.0, 3, 200)])
    page = store.search.find(Search(parse_filter("metrics.loss > 3", 0.0)), 0.0)
    assert [row["id"] for row in page.rows] == [high]
    assert last_of(store, low) == 1.0


def test_what_the_script_logs_afterwards_is_the_last_value(store, log):
    run_id = log([(5.0, 10, 100)], [(1.0, 3, 200)])
    record = {"k": "metric", "n": "loss", "v": 0.25, "t": 1.0}
    assert store.journals.ingest(run_id, "0-1-a.jsonl", 0, 1, [record])
    assert last_of(store, run_id) == 0.25
    assert (1000, 2, 0.25) in store.histories.read(run_id, "loss")


def test_texts_of_scripts_are_not_in_a_history(store, log):
    run_id = log([(5.0, 10, 100)])
    records = [{"k": "metric", "n": "loss", "v": value, "t": 1.0} for value in ("text", 3, True)]
    assert store.journals.ingest(run_id, "0-1-a.jsonl", 0, 1, records)
    assert store.histories.read(run_id, "loss") == [(100, 10, 5.0), (1000, 2, 3.0), (1000, 3, 1.0)]
    assert store.histories.read(run_id, "loss", 1, 1) == [(1000, 2, 3.0)]


def test_a_metric_without_values_has_no_history(store, log):
    assert store.histories.read("no such run", "loss") == []
    assert store.histories.read(log([(1.0, 0, 0)]), "other") == []
    assert store.histories.sample("no such run", "loss", 5) == []


@pytest.mark.parametrize("most", [1, 2, 3, 7, 20])
def test_a_sample_has_the_first_and_last_by_step(store, log, most):
    steps = [9, 3, 7, 1, 5, 0, 2, 8, 6, 4]
    run_id = log([(float(step), step, 50 - step) for step in steps])
    found = [step for _, step, _ in store.histories.sample(run_id, "loss", most)]
    assert found == [*choose_sample(10, most)]
    inside = [step for _, step, _ in store.histories.sample(run_id, "loss", most, (2, 6))]
    assert inside == [2 + place for place in choose_sample(5, most)]
    assert store.histories.sample(run_id, "loss", most, (100, 200)) == []


@pytest.mark.parametrize(
    "bad",
    [
        5,
        None,
        [],
        ["loss", 2.0, 1],
        ["loss", "no number", 2, 1],
        ["loss", 2.0, 2**63, 1],
        ["loss", 2.0, -(2**63) - 1, 1],
        ["loss", 2.0, 1.5, 1],
        ["loss", 2.0, 1, -1],
        ["loss", 2.0, 1, math.nan],
        ["loss", 2.0, 1, 10**400],
        ["", 2.0, 1, 1],
        [5, 2.0, 1, 1],
    ],
    ids=repr,
)
def test_a_batch_is_kept_whole_or_not_at_all(store, log, bad):
    """A script can write such a record as well; the ones after it are read."""
    run_id = log([(1.0, 0, 1)])
    records = [{"k": "points", "v": [["loss", 2.0, 1, 1], bad]}, {"k": "points", "v": [["loss", 3.0, 2, 2]]}]
    assert store.journals.ingest(run_id, "mlflow.jsonl", 1, 2, records)
    assert store.histories.read(run_id, "loss") == [(1, 0, 1.0), (2, 2, 3.0)]
    assert "passed over" in store.runs.get(run_id).warnings[0]
