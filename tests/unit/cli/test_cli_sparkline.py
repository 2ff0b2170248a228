"""Sparklines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainmaster.sdk.display.sparkline import sparkline, thin

ANYTHING = st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans())


@given(st.lists(ANYTHING), st.integers(1, 50))
def test_any_values_become_a_line_of_the_right_length(values: list[object], width: int) -> None:
    assert len(sparkline(values, width)) == min(len(values), width)


def test_low_is_low_and_high_is_high() -> None:
    assert sparkline([5, 1, 3]) == "█▁▅"
    assert sparkline([-1e308, 1e308]) == "▁█"


def test_the_smallest_floats_do_not_divide_by_zero() -> None:
    assert sparkline([0.0, 5e-324]) == "▄▄"


@given(st.lists(st.integers(), min_size=2), st.integers(2, 30))
def test_thinning_keeps_both_ends(values: list[int], count: int) -> None:
    kept = thin(values, count)
    assert (kept[0], kept[-1]) == (values[0], values[-1])
