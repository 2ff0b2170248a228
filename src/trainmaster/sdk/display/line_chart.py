"""Lines as a small chart of text, for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Paint = Callable[[str, str], str]
Points = Sequence[tuple[float, float | None]]

_EMPTY = 0x2800
# The bits of the eight dots of a character, by column and row.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_ACROSS, _DOWN = 2, 4


def line_chart(lines: Sequence[Points], styles: Sequence[str], width: int, height: int, paint: Paint) -> list[str]:
    """The lines in one chart of `width` by `height` characters, each in its own style; empty without any number.

    Where lines cross, the later one is seen.

    >>> for row in line_chart([[(0, 0.0), (9, 1.0)]], [""], 14, 2, lambda text, style: text): print(row)
    1 ┤⠀⠀⠀⠀⠀⢀⣀⠤⠔⠒⠉
    0 ┤⣀⠤⠔⠒⠉⠁⠀⠀⠀⠀⠀
    """
    heights = [y for points in lines for _, y in points if y is not None]
    if not heights:
        return []
    low, high = min(heights), max(heights)
    top, bottom = f"{high:.4g}", f"{low:.4g}"
    margin = max(len(top), len(bottom))
    columns = max(4, width - margin - 2)
    across = [x for points in lines for x, _ in points]
    drawn = [_Canvas(columns, height, (min(across), max(across)), (low, high)) for _ in lines]
    for canvas, points in zip(drawn, lines, strict=True):
        canvas.draw(points)
    rows = []
    for row in range(height):
        label = top if row == 0 else bottom if row == height - 1 else ""
        rows.append(f"{label:>{margin}} ┤" + _write_row(drawn, styles, row, paint))
    return rows


class _Canvas:
    """The dots of one line."""

    def __init__(self, columns: int, rows: int, across: tuple[float, float], up: tuple[float, float]) -> None:
        self._width, self._height = columns * _ACROSS, rows * _DOWN
        self._across, self._up = across, up
        self.cells = [[0] * columns for _ in range(rows)]

    def draw(self, points: Points) -> None:
        before: tuple[int, int] | None = None
        for x, y in points:
            if y is None:
                before = None
                continue
            place = _scale(x, self._across, self._width), self._height - 1 - _scale(y, self._up, self._height)
            self._connect(before or place, place)
            before = place

    def _connect(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            x = round(start[0] + (end[0] - start[0]) * step / steps)
            y = round(start[1] + (end[1] - start[1]) * step / steps)
            self.cells[y // _DOWN][x // _ACROSS] |= _DOTS[x % _ACROSS][y % _DOWN]


def _scale(value: float, limits: tuple[float, float], size: int) -> int:
    low, high = limits
    # Halved first: the difference of two large floats may overflow.
    span = high / 2 - low / 2
    share = (value / 2 - low / 2) / span if span else 0.5
    return min(size - 1, max(0, round(share * (size - 1))))


def _write_row(drawn: Sequence[_Canvas], styles: Sequence[str], row: int, paint: Paint) -> str:
    parts: list[tuple[str, str]] = []
    for column in range(len(drawn[0].cells[row])):
        shown = [number for number, canvas in enumerate(drawn) if canvas.cells[row][column]]
        style = styles[shown[-1]] if shown else ""
        text = chr(_EMPTY + (drawn[shown[-1]].cells[row][column] if shown else 0))
        if parts and parts[-1][1] == style:
            parts[-1] = (parts[-1][0] + text, style)
        else:
            parts.append((text, style))
    return "".join(paint(text, style) for text, style in parts)
