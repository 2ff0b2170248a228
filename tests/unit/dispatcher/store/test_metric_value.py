from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

from trainmaster.shared import metrics
from trainmaster.shared.metrics import metric_value
from trainmaster.shared.records import MetricSeries


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
    assert metric_value(MetricSeries("m", kind, len(values), values)) == expected


def test_the_examples_are_true():
    assert doctest.testmod(metrics).failed == 0


def test_it_costs_no_database():
    code = "import sys, trainmaster.shared.metrics; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
