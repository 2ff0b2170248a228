from __future__ import annotations

import pytest

from trainmaster.job.script.metrics import metric_value, shape_records


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("scalar", (0.5,), 0.5),
        ("scalar", (None,), None),
        ("scalar", (1, "x", True), [1, "x", True]),
        ("scalar", (), []),
        ("row", ({"a": 1, "b": 2},), {"a": 1, "b": 2}),
        ("row", ({"a": 1}, {"b": 2}), {"a": [1, None], "b": [None, 2]}),
        ("row", (), {}),
        ("row", ({"a": 1}, 5), {"a": [1, None], "m": [None, 5]}),
        ("scalar", (5, {"a": 1}), [5, {"a": 1}]),
        ("image", ("p.png",), "aml://artifactId/p.png"),
        ("json", ("a.json", "b.json"), ["aml://artifactId/a.json", "aml://artifactId/b.json"]),
        ("image", ("p.png", 5), ["aml://artifactId/p.png", 5]),
    ],
)
def test_shapes(kind, values, expected):
    assert metric_value("m", kind, values) == expected


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([("row", {"a": 1}), ("metric", 5)], {"a": [1, None], "m": [None, 5]}),
        ([("metric", 5), ("row", {"a": 1})], [5, {"a": 1}]),
        ([("table", {"a": [1, 2]}), ("row", {"a": 3})], {"a": [1, 2, 3]}),
        ([("list", [1, 2]), ("metric", 3)], [1, 2, 3]),
    ],
)
def test_the_first_record_decides_about_the_kind_as_in_the_store(records, expected):
    assert shape_records([{"k": kind, "n": "m", "v": value} for kind, value in records]) == {"m": expected}
