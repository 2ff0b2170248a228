"""Tables of plain text. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_GAP = "  "
_SHORTEST = 8


@dataclass(frozen=True)
class Column:
    """A column: its heading, its alignment, whether it may be cut to fit, and the style of its cells."""

    heading: str
    right: bool = False
    flexible: bool = False
    style: Callable[[str], str] = lambda text: ""
    """Gives the styles of a cell by its text."""


Paint = Callable[[str, str], str]


def render(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None, paint: Paint) -> list[str]:
    """The lines of a table. With a `width`, flexible columns are cut to fit.

    >>> render([Column("RUN"), Column("TOOK", right=True)], [("a_1", "3.0 s")], None, lambda text, styles: text)
    ['RUN   TOOK', 'a_1  3.0 s']
    """
    widths = [
        max(cells(text) for text in (column.heading, *(row[n] for row in rows))) for n, column in enumerate(columns)
    ]
    if width is not None:
        widths = _fit_widths(columns, widths, width)
    lines = [_line(columns, [column.heading for column in columns], widths, lambda column, text: paint(text, "bold"))]
    for row in rows:
        lines.append(_line(columns, row, widths, lambda column, text: paint(text, column.style(text))))
    return lines


def _fit_widths(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Narrower widths for flexible columns, the widest first. The other columns may exceed the width."""
    fitted = list(widths)
    excess = sum(fitted) + len(_GAP) * (len(fitted) - 1) - width
    flexible = sorted((n for n, column in enumerate(columns) if column.flexible), key=lambda n: -fitted[n])
    for n in flexible:
        if excess <= 0:
            break
        cut = min(excess, max(0, fitted[n] - _SHORTEST))
        fitted[n] -= cut
        excess -= cut
    return fitted


def _line(
    columns: Sequence[Column], texts: Sequence[str], widths: Sequence[int], painted: Callable[[Column, str], str]
) -> str:
    parts = []
    for n, (column, text) in enumerate(zip(columns, texts, strict=True)):
        shown = clip(text, widths[n])
        space = " " * (widths[n] - cells(shown))
        # The padding is not painted, so that no colour extends beyond the text.
        parts.append(space + painted(column, shown) if column.right else painted(column, shown) + space)
    return _GAP.join(parts).rstrip()


def clip(text: str, width: int) -> str:
    """`text` in at most `width` cells.

    >>> clip("a long story", 8)
    'a long …'
    """
    if cells(text) <= width:
        return text
    kept = ""
    for letter in text:
        if cells(kept + letter) > width - 1:
            break
        kept += letter
    return kept + "…"


def cells(text: str) -> int:
    """The number of terminal cells of a text.

    >>> cells("abc"), cells("日本"), cells("e\\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
