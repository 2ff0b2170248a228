"""Tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainmaster.sdk.display.table import Column, cells, clip, render

COLUMNS = (Column("RUN"), Column("NOTE", flexible=True))
ROWS = [("experiment_1700000000_abcdef01", "a reason that is a good deal longer than it has to be"), ("b", "")]


def plain(text: str, styles: str) -> str:
    return text


def test_without_a_width_nothing_is_cut() -> None:
    assert ROWS[0][0] in render(COLUMNS, ROWS, None, plain)[1]
    assert ROWS[0][1] in render(COLUMNS, ROWS, None, plain)[1]


def test_only_flexible_columns_are_cut() -> None:
    lines = render(COLUMNS, ROWS, 50, plain)
    assert ROWS[0][0] in lines[1]
    assert lines[1].endswith("…")
    assert max(map(cells, lines)) == 50


def test_an_id_stands_out_of_a_terminal_that_is_too_narrow() -> None:
    assert ROWS[0][0] in render(COLUMNS, ROWS, 10, plain)[1]


def test_paint_does_not_count_as_width() -> None:
    painted = render(
        (Column("A", style=lambda text: "red"), Column("B")), [("x", "y")], None, lambda t, s: f"<{s}:{t}>"
    )
    assert painted == ["<bold:A>  <bold:B>", "<red:x>  <:y>"]


def test_no_line_ends_with_spaces() -> None:
    assert all(line == line.rstrip() for line in render(COLUMNS, ROWS, None, plain))


@given(st.text(), st.integers(1, 40))
def test_clipped_fits(text: str, width: int) -> None:
    assert cells(clip(text, width)) <= width
