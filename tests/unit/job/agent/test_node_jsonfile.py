"""The agent's JSON is the JSON of everybody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.agent import jsonfile

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_written_here_and_read_there_and_back(value: object) -> None:
    assert json.loads(jsonfile.dumps(value)) == value
    assert jsonfile.loads(json.dumps(value, indent=1)) == value


@pytest.mark.parametrize("text", ["", " ", "{", "[1,]", '{"a" 1}', "nul", "1 2", '"open', "[" * 5000])
def test_what_is_not_json(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        jsonfile.loads(text)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    (tmp_path / "a.json.part").write_text("what a killed agent left behind, and longer than the new")
    jsonfile.write(str(path), {"a": "é"})
    assert jsonfile.read(str(path)) == {"a": "é"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
