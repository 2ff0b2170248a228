"""Which part of a request does not fit: sentences out of schemas, whatever the request is."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.scoring.server import schema_errors
from trainmaster.scoring.server.schema_errors import describe_errors

NUMBERS = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}, "format": "numpy.ndarray"}
ROW = {
    "type": "object",
    "required": ["a", "b"],
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
}
SCHEMA = {
    "type": "object",
    "properties": {
        "data": NUMBERS,
        "table": {"type": "array", "items": ROW, "format": "pandas.DataFrame:records"},
        "times": {"type": "integer"},
        "sure": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "other": {},
    },
    "example": {"data": [[1.0, 2.0]], "table": [{"a": 1, "b": "x"}], "times": 1, "sure": True},
}
RIGHT = {"data": [[1, 2.5]], "table": [{"a": 1, "b": "x"}], "times": 1, "sure": False, "when": "2024-12-31 10:00:00"}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("data", "x", "data: it must be an array, and is a text."),
        ("data", None, "data: it must be an array, and is null."),
        ("data", [1.5], "data[0]: it must be an array, and is a number with a point."),
        ("data", [[1, 2], [3, "4"]], "data[1][1]: it must be a number, and is a text."),
        ("data", [[1, True]], "data[0][1]: it must be a number, and is true."),
        ("data", [[1, 2, 3]], "data: it must be an array of any x 2, and is one of 1 x 3."),
        ("data", [[1, 2], [3]], "data: its rows have different lengths."),
        ("data", [], "data: it is empty, or a row of it."),
        ("data", [[]], "data: it is empty, or a row of it."),
        ("table", {"a": [1]}, "table: it must be an array, and is an object."),
        ("table", [[1, "x"]], "table[0]: it must be an object, and is an array."),
        ("table", [{"a": 1, "b": "x"}, {"b": "x"}], "table[1]: it lacks a."),
        ("table", [{"a": 1, "b": "x", "c": 1}], "table[0]: it may only have a, b."),
        ("table", [{"a": "q", "b": "x"}], "table[0].a: it must be a whole number, and is a text."),
        ("times", 1.5, "times: it must be a whole number, and is a number with a point."),
        ("sure", 1, "sure: it must be true or false, and is a number."),
        ("when", "soon", "when: it must be a date, as 2024-12-31 23:59:59."),
        ("other", object, ""),
    ],
)
def test_the_part_is_named(name: str, value: Any, sentence: str) -> None:
    assert describe_errors(SCHEMA, {**RIGHT, name: value}) == sentence


def test_the_first_parts_are_named_and_what_fits_is_not() -> None:
    assert describe_errors(SCHEMA, RIGHT) == describe_errors({}, RIGHT) == describe_errors(SCHEMA, {}) == ""
    wrong = dict.fromkeys(("data", "sure", "table", "times"))
    assert describe_errors(SCHEMA, wrong).count("it must be") == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(SCHEMA["properties"], JSON)))
def test_whatever_is_sent_gets_sentences(data: dict[str, Any]) -> None:
    said = describe_errors(SCHEMA, data)
    assert said == "" or said.endswith(".")


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(schema_errors).failed == 0
