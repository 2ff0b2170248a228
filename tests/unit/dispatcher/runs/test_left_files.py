"""The sentence about files outside of outputs/ and logs/."""

from __future__ import annotations

from typing import Any

import pytest

from trainmaster.dispatcher.runs.left_files import find_left_files, warning


def result(count: int, *sizes: int, name: str = "f", **more: Any) -> dict[str, Any]:
    largest = [{"name": f"{name}{number}", "bytes": size} for number, size in enumerate(sizes)]
    return {"left": {"count": count, "bytes": sum(sizes), "largest": largest, "all": True, **more}}


@pytest.mark.parametrize(
    ("results", "sentence"),
    [
        ([result(1, 5)], "The script left 1 file (5 B) outside of outputs/ and logs/: f0 (5 B)."),
        (
            [None, {}, result(0), result(1, 2048)],
            "The script left 1 file (2.0 kB) outside of outputs/ and logs/: f0 (2.0 kB).",
        ),
        (
            [result(1200, 5, 4, all=False), result(2, 9, 1, name="g")],
            "The script left at least 1,202 files (19 B) outside of outputs/ and logs/: "
            "g0 (9 B), f0 (5 B), f1 (4 B), g1 (1 B), 1,198 more.",
        ),
    ],
)
def test_what_was_left_is_told_once_for_all_nodes(results: Any, sentence: str) -> None:
    left = find_left_files(results)
    assert left is not None
    assert left.sentence == sentence
    assert warning(left, "run_1", stays=True) == f"{sentence} 'trainmaster download run_1 code/' copies them."
    assert "outputs/." in warning(left, "run_1", stays=False)


@pytest.mark.parametrize(
    "told",
    [
        None,
        3,
        {},
        {"count": "many", "bytes": 1, "largest": [], "all": 1},
        {"count": 1, "bytes": 1, "largest": 7, "all": 1},
    ],
)
def test_a_report_that_is_none_tells_nothing(told: Any) -> None:
    assert find_left_files([{"left": told}]) is None


def test_names_cannot_steer_a_terminal() -> None:
    left = find_left_files([result(1, 1, name="\x1b]0;title\x07\n")])
    assert left is not None
    assert "?]0;title??0 (1 B)" in left.sentence
