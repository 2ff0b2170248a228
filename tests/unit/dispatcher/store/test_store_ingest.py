from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.job.errors import RunNotFoundException
from trainmaster.shared.records import RunError, RunQuery, Status


@pytest.fixture
def log(store, add):
    """Ingest records into the run 'run' from its one journal."""
    add()

    def ingest(*records):
        start = store.journals.get_offsets("run").get("rank0", 0)
        assert store.journals.ingest("run", "rank0", start, start + len(records), records)
        return store.runs.get("run")

    return ingest


def metric(name, value, **more):
    return {"k": "metric", "n": name, "v": value, "t": 1.0, **more}


def values(store, run="run"):
    return {series.name: series.values for series in store.metrics.read(run)}


def test_a_batch_is_applied_once(store, add):
    add()
    records = [metric("loss", 0.5)]
    assert store.journals.get_offsets("run") == {}
    assert store.journals.ingest("run", "rank0", 0, 40, records)
    assert not store.journals.ingest("run", "rank0", 0, 40, records)
    assert not store.journals.ingest("run", "rank0", 39, 80, records)
    assert store.journals.ingest("run", "rank1", 0, 40, records)
    assert store.journals.ingest("run", "rank0", 40, 80, records)
    assert store.journals.get_offsets("run") == {"rank0": 80, "rank1": 40}
    assert values(store) == {"loss": (0.5, 0.5, 0.5)}


@pytest.mark.parametrize(
    "name", ["/somewhere", "../../../x", "a/b", "..", ".", ".removed", "", "x" * 231, "nul\0", "line\nbreak", "ü", 7]
)
def test_the_id_of_a_child_is_never_a_path(store, log, name):
    (warning,) = log({"k": "child", "id": name, "t": 1.0}, metric("loss", 1)).warnings
    assert "1 record was passed over" in warning
    assert store.removal.list_family("run") == [("run", Status.RUNNING)]
    assert values(store) == {"loss": (1,)}


def test_a_batch_without_records_moves_the_offset(store, log):
    assert log().warnings == ()
    assert store.journals.ingest("run", "rank0", 0, 9, []) and store.journals.get_offsets("run") == {"rank0": 9}


def test_nobody_has_no_journal(store):
    with pytest.raises(RunNotFoundException):
        store.journals.ingest("nobody", "rank0", 0, 1, [])


def test_every_kind_of_metric(store, log):
    log(
        metric("loss", 0.5, s=1),
        metric("loss", 0.25, s=2),
        {"k": "list", "n": "list", "v": [1, 2.5, "x"], "t": 2.0},
        {"k": "row", "n": "row", "v": {"a": 1, "b": None}, "t": 3.0},
        {"k": "table", "n": "table", "v": {"a": [1, 2], "b": ["x", "y"]}, "t": 4.0},
        {"k": "image", "n": "image", "v": "image_1.png", "t": 5.0},
        {"k": "json", "n": "json", "v": "json_1.json", "t": 6.0},
    )
    assert values(store) == {
        "loss": (0.5, 0.25),
        "list": (1, 2.5, "x"),
        "row": ({"a": 1, "b": None},),
        "table": ({"a": 1, "b": "x"}, {"a": 2, "b": "y"}),
        "image": ("image_1.png",),
        "json": ("json_1.json",),
    }
    kinds = {summary.name: summary.kind for summary in store.metrics.summarize("run")}
    assert kinds == {"loss": "scalar", "list": "scalar", "row": "row", "table": "row", "image": "image", "json": "json"}


def test_empty_lists_and_tables_are_metrics_without_values(store, log):
    log({"k": "list", "n": "list", "v": [], "t": 1.0}, {"k": "table", "n": "table", "v": {}, "t": 1.0})
    assert [(series.name, series.count, series.values) for series in store.metrics.read("run")] == [
        ("list", 0, ()),
        ("table", 0, ()),
    ]
    assert [summary.last for summary in store.metrics.summarize("run")] == [None, None]


def test_labels_and_texts(store, log):
    run = log(
        {"k": "tags", "v": {"a": "1", "b": None}},
        {"k": "untag", "v": ["a"]},
        {"k": "properties", "v": {"p": "1"}},
        {"k": "set", "v": {"display_name": "shown", "description": "told"}},
    )
    assert (run.tags, run.properties) == ({"b": None}, {"p": "1"})
    assert (run.display_name, run.description, run.warnings) == ("shown", "told", ())
    assert [found.id for found in store.runs.find(RunQuery(tags={"b": None}))] == ["run"]


def test_a_second_value_for_a_property_is_a_warning(log):
    run = log({"k": "properties", "v": {"p": "1"}}, {"k": "properties", "v": {"p": "2", "q": "3"}}, metric("m", 1))
    assert run.properties == {"p": "1", "q": "3"}
    (warning,) = run.warnings
    assert "'p'" in warning


def test_children_begin_log_and_end(store, log):
    log(
        {"k": "child", "id": "run_c", "name": "fold 1", "t": 5.0},
        {"k": "child", "id": "run_g", "name": None, "t": 6.0, "r": "run_c"},
        metric("loss", 1, r="run_c"),
        metric("loss", 2, r="run_g"),
        {"k": "tags", "v": {"fold": "1"}, "r": "run_c"},
        {"k": "state", "v": "Completed", "t": 7.0, "r": "run_c", "error": None},
    )
    child, grandchild, run = store.runs.get("run_c"), store.runs.get("run_g"), store.runs.get("run")
    assert (child.parent_id, child.status, child.started_at, child.ended_at) == ("run", Status.COMPLETED, 5.0, 7.0)
    assert (child.display_name, child.experiment, child.type, child.number) == ("fold 1", "exp", run.type, 2)
    assert child.tags == {"fold": "1"}
    assert (grandchild.parent_id, grandchild.status) == ("run_c", Status.RUNNING)
    assert (values(store, "run_c"), values(store, "run_g")) == ({"loss": (1,)}, {"loss": (2,)})
    later = log(metric("loss", 3, r="run_g"), {"k": "child", "id": "run_c", "name": "again", "t": 8.0})
    assert values(store, "run_g") == {"loss": (2, 3)} and later.warnings == ()
    assert store.runs.get("run_c") == child


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, None),
        ("it broke", RunError("UserError", "it broke")),
        ({"code": "Mine", "message": "m", "details": {"a": 1}}, RunError("Mine", "m", {"a": 1})),
        ({}, None),
        ({"odd": 1}, RunError("UserError", "")),
    ],
)
def test_an_interactive_run_ends_by_its_journal(store, log, error, expected):
    run = log({"k": "state", "v": "Failed", "error": error, "t": 109.0})
    assert (run.status, run.ended_at, run.error) == (Status.FAILED, 109.0, expected)
    assert log({"k": "state", "v": "Completed", "t": 10.0}) == run


def test_a_job_does_not_end_by_its_journal(store, add):
    add(spec="{}")
    records = [{"k": "state", "v": state, "t": 1.0} for state in ("Completed", "Failed")]
    store.journals.ingest("run", "rank0", 0, 2, records)
    run = store.runs.get("run")
    assert run.status is Status.RUNNING and "1 record was passed over" in run.warnings[0]


def test_a_journal_cannot_touch_other_runs(store, add, log):
    add("parent")
    add("mine", parent_id="parent")
    other = add("other")
    attacks = [
        metric("loss", 1, r="other"),
        {"k": "tags", "v": {"a": "b"}, "r": "other"},
        {"k": "state", "v": "Failed", "t": 1.0, "r": "other"},
        {"k": "child", "id": "other", "name": "x", "t": 1.0},
        {"k": "child", "id": "new", "name": "x", "t": 1.0, "r": "other"},
        metric("loss", 1, r="nobody"),
        metric("loss", 1, r=7),
    ]
    run = log(*attacks)
    assert store.runs.get("other") == other and values(store, "other") == {} and store.runs.get("new") is None
    assert "7 records were passed over" in run.warnings[0]
    assert store.journals.ingest("mine", "j", 0, 1, [{"k": "tags", "v": {"a": "b"}, "r": "parent"}])
    assert store.runs.get("parent").tags == {}


HUGE = 10**5000
BAD = [
    {},
    {"k": "nonsense"},
    {"k": ["list"]},
    {"k": "metric"},
    {"k": "metric", "n": 5, "v": 1, "t": 1.0},
    {"k": "metric", "n": "", "v": 1, "t": 1.0},
    {"k": "metric", "n": "m", "t": 1.0},
    {"k": "metric", "n": "m", "v": 1},
    {"k": "metric", "n": "m", "v": 1, "t": "now"},
    {"k": "metric", "n": "m", "v": 1, "t": float("nan")},
    {"k": "list", "n": "m", "v": 5, "t": 1.0},
    {"k": "row", "n": "m", "v": [1], "t": 1.0},
    {"k": "table", "n": "m", "v": {"a": 1}, "t": 1.0},
    {"k": "image", "n": "m", "v": 1, "t": 1.0},
    {"k": "tags", "v": "a"},
    {"k": "untag", "v": "a"},
    {"k": "properties", "v": None},
    {"k": "set", "v": {"status": "Completed"}},
    {"k": "set", "v": {"display_name": 5}},
    {"k": "child", "name": "x", "t": 1.0},
    {"k": "child", "id": "c", "name": "x"},
    {"k": "state", "v": "Running", "t": 1.0},
    {"k": "state", "v": "Completed"},
    {"k": "metric", "n": "m", "v": 1, "t": 10**400},
    {"k": "tags", "v": {"a": HUGE}},
    {"k": "properties", "v": {"a": HUGE}},
    {"k": "row", "n": "m", "v": {"a": HUGE}, "t": 1.0},
    "text",
    None,
    5,
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_malformed_record_is_passed_over_and_counted(store, log, bad):
    run = log(metric("before", 1), bad, metric("after", 2))
    assert values(store) == {"before": (1,), "after": (2,)}
    (warning,) = run.warnings
    assert "'rank0'" in warning and "1 record was passed over" in warning


def test_malformed_records_are_counted_over_batches(log):
    for _ in range(3):
        run = log(*BAD)
    (warning,) = run.warnings
    assert f"{3 * len(BAD)} records were passed over" in warning and "its kind None is unknown" in warning


def test_a_metric_of_several_kinds_keeps_all_and_warns(store, log):
    run = log(metric("m", 1), {"k": "row", "n": "m", "v": {"a": 2}, "t": 1.0})
    assert values(store) == {"m": (1, {"a": 2})} and "'m'" in run.warnings[0]
    assert len(log({"k": "row", "n": "m", "v": {"a": 3}, "t": 1.0}).warnings) == 1
    assert store.metrics.summarize("run")[0].kind == "scalar"


def test_broken_characters_do_not_stop_a_journal(store, log):
    run = log(
        metric("m\ud800", "v\ud800"),
        {"k": "tags", "v": {"\ud800": "\ud800"}},
        {"k": "set", "v": {"display_name": "\ud800\0"}},
        {"k": "nonsense\ud800"},
    )
    assert values(store) == {"m\\ud800": ("v\\ud800",)} and run.display_name == "\\ud800\\x00"


def test_a_huge_number_cannot_be_kept_but_stops_nothing(store, log):
    assert len(log(metric("m", 10**5000), metric("m", 10**300)).warnings) == 1
    assert values(store) == {"m": (10**300,)}


@pytest.mark.parametrize(
    ("step", "kept"), [(3, 3), (3.0, 3), (3.5, None), ("3", None), (True, None), (2**70, None), (-1, -1)]
)
def test_steps(store, log, step, kept):
    log(metric("m", 1, s=step))
    assert store.metrics.read("run")[0].steps == (kept,)


def test_a_failing_batch_leaves_nothing(store, log, monkeypatch):
    from trainmaster.dispatcher.store import points

    def fail(*_):
        raise RuntimeError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(points, "append", fail)
        with pytest.raises(RuntimeError):
            log({"k": "tags", "v": {"a": "b"}}, metric("m", 1))
    assert store.runs.get("run").tags == {} and store.journals.get_offsets("run") == {}
    log(metric("m", 1))
    assert values(store) == {"m": (1,)}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(["k", "n", "v", "t", "s", "r", "id", "name", "error"])
_KINDS = st.sampled_from(
    ["metric", "list", "row", "table", "image", "json", "tags", "untag", "properties", "set", "child", "state"]
)
_RECORDS = st.builds(
    lambda record, kind, time: {**record, "k": kind, "t": time},
    st.dictionaries(_KEYS, _JSON),
    _KINDS,
    st.floats() | st.none(),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_RECORDS | _JSON, max_size=6))
def test_no_record_whatever_stops_a_journal(store, log_any, records):
    log_any(records)


@pytest.fixture
def log_any(store, add):
    add()

    def ingest(records):
        start = store.journals.get_offsets("run").get("any", 0)
        assert store.journals.ingest("run", "any", start, start + 1, records)
        store.metrics.read("run"), store.metrics.summarize("run"), store.runs.get("run")

    return ingest
