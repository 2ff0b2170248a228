"""The curves of several runs as one picture: a panel for each metric, a line for each run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.sdk.comparison.comparison import points_of
from trainmaster.sdk.sweeps.pictures.axes import Axis
from trainmaster.sdk.sweeps.pictures.colours import FRAME, INK, QUIET
from trainmaster.sdk.sweeps.pictures.drawing import Drawing
from trainmaster.sdk.sweeps.pictures.shapes import Dot, Label, Line, Point, Shape
from trainmaster.sdk.sweeps.pictures.trials import fit_text, text_width
from trainmaster.shared.records import Curve

COLOURS = ("#1f6fb2", "#e4572e", "#2e9e5b", "#8e5bb5", "#b8860b", "#0b8a8f", "#c2417c", "#6b7280")
"""Distinguishable next to each other; they repeat after the last."""

_WIDTH = 960.0
_PANEL = 240.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 30.0, 28.0
_WIDE_RATIO = 1000.0
_SMALLEST_RADIUS = 2.2


def draw_curves(title: str, names: Mapping[str, str], curves: Mapping[str, Sequence[Curve]]) -> Drawing:
    """`names` is what the legend calls each run, by id; `curves` are those of each metric."""
    colours = {run_id: COLOURS[number % len(COLOURS)] for number, run_id in enumerate(names)}
    columns = 1 if len(curves) == 1 else 2
    width = _WIDTH / columns
    shapes: list[Shape] = [Label(20, 24, fit_text(title, _WIDTH - 40, 15), 15, "start", INK, bold=True)]
    below = _add_legend(shapes, names, colours)
    for number, (name, lines) in enumerate(curves.items()):
        left, top = (number % columns) * width, below + (number // columns) * _PANEL
        shapes += _Panel(left, top, width, lines).draw(name, colours)
    rows = -(-len(curves) // columns)
    if not curves:
        shapes.append(Label(_WIDTH / 2, below + 30, "the runs have no metric with more than one value", 13))
    return Drawing(_WIDTH, below + max(rows * _PANEL, 60), title, tuple(shapes))


def _add_legend(shapes: list[Shape], names: Mapping[str, str], colours: Mapping[str, str]) -> float:
    """Adds the names of the runs, in as many lines as they need; returns where the next part begins."""
    x, y = 20.0, 48.0
    for run_id, name in names.items():
        text = fit_text(name, 420, 12)
        needed = 26 + text_width(text, 12) + 18
        if x > 20 and x + needed > _WIDTH - 20:
            x, y = 20.0, y + 20
        shapes += [Line(((x, y), (x + 20, y)), colours[run_id], 2.5), Label(x + 26, y, text, 12, "start", INK)]
        x += needed
    return y + 14


class _Panel:
    """One metric."""

    def __init__(self, left: float, top: float, width: float, lines: Sequence[Curve]) -> None:
        self._left, self._right = left + _LEFT, left + width - _RIGHT
        self._top, self._bottom = top + _TOP, top + _PANEL - _BOTTOM
        self._lines = [(line.run_id, points_of(line)) for line in lines]
        across = [x for _, points in self._lines for x, _ in points]
        up = [y for _, points in self._lines for _, y in points if y is not None]
        self._across = Axis("", min(across, default=0.0), max(across, default=1.0))
        low, high = min(up, default=0.0), max(up, default=1.0)
        self._up = Axis("", low, high, logarithmic=low > 0 and high / low >= _WIDE_RATIO)

    def draw(self, name: str, colours: Mapping[str, str]) -> Iterator[Shape]:
        scale = " (logarithmic)" if self._up.logarithmic else ""
        room = self._right - self._left
        yield Label(self._left, self._top - 14, fit_text(name + scale, room, 12), 12, "start", INK, bold=True)
        yield from self._draw_grid()
        for run_id, points in self._lines:
            for part in self._split(points):
                if len(part) > 1:
                    yield Line(part, colours[run_id], 1.8, 0.9)
                else:
                    yield Dot(*part[0], _SMALLEST_RADIUS, colours[run_id])

    def _draw_grid(self) -> Iterator[Shape]:
        for share, text in self._up.ticks():
            y = self._y(share)
            yield Line(((self._left, y), (self._right, y)), FRAME, 0.6, 0.7)
            yield Label(self._left - 6, y, text, 10, "end", QUIET)
        yield Line(((self._left, self._bottom), (self._right, self._bottom)), FRAME, 1.2)
        for share, text in self._across.ticks():
            if "." not in text:
                # Steps are whole numbers.
                yield Label(self._x(share), self._bottom + 12, text, 10, "middle", QUIET)

    def _split(self, points: Sequence[tuple[float, float | None]]) -> Iterator[tuple[Point, ...]]:
        """The parts of a line between values that are not numbers."""
        part: list[Point] = []
        for x, value in [*points, (0.0, None)]:
            share, height = self._across.place(x), None if value is None else self._up.place(value)
            if share is not None and height is not None:
                part.append((self._x(share), self._y(height)))
                continue
            if part:
                yield tuple(part)
            part = []

    def _x(self, share: float) -> float:
        return self._left + share * (self._right - self._left)

    def _y(self, share: float) -> float:
        return self._bottom - share * (self._bottom - self._top)
