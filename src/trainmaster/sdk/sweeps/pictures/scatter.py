"""Scatter: each parameter by itself against the metric. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trainmaster.sdk.sweeps.pictures.axes import Axis, metric_axis, parameter_axes
from trainmaster.sdk.sweeps.pictures.colours import BEST, CUT, FRAME, INK, QUIET
from trainmaster.sdk.sweeps.pictures.drawing import Drawing
from trainmaster.sdk.sweeps.pictures.shapes import Dot, Label, Line, Shape
from trainmaster.sdk.sweeps.pictures.trials import Shades, counts, drawing_order, fit_text, heading, nothing, text_width
from trainmaster.tuning.space import flat
from trainmaster.tuning.view import SweepView, TrialView

_MOST_COLUMNS = 4
_TOP, _LEFT, _RIGHT, _BELOW = 88.0, 74.0, 24.0, 14.0
_GAP_X, _GAP_Y = 22.0, 62.0
_MARGIN = 10.0
_MANY = 60


def scatter(view: SweepView) -> Drawing:
    """The picture of a sweep."""
    axes = parameter_axes(view)
    metric = metric_axis(view)
    columns = len(axes) if len(axes) <= 3 else min(_MOST_COLUMNS, -(-len(axes) // 2))
    rows = -(-len(axes) // columns)
    wide, high = {1: (620.0, 320.0), 2: (380.0, 280.0), 3: (300.0, 260.0)}.get(columns, (250.0, 200.0))
    width = _LEFT + columns * wide + (columns - 1) * _GAP_X + _RIGHT
    height = _TOP + rows * (high + _GAP_Y) + _BELOW
    shades = Shades(view, metric)
    shapes: list[Shape] = [*heading(view, width, 20)]
    for n, axis in enumerate(axes):
        panel = _Panel(
            _LEFT + (n % columns) * (wide + _GAP_X), _TOP + (n // columns) * (high + _GAP_Y), wide, high, axis, metric
        )
        shapes += panel.frame(first=n % columns == 0)
        shapes += panel.trials(view, shades)
    shapes += nothing(view, width, height)
    return Drawing(width, height, f"{view.experiment}: scatter of {view.run_id}", tuple(shapes))


class _Panel:
    """One parameter against the metric."""

    def __init__(self, left: float, top: float, width: float, height: float, across: Axis, up: Axis) -> None:
        self._left, self._top, self._width, self._height = left, top, width, height
        self._across, self._up = across, up

    def frame(self, first: bool) -> Iterator[Shape]:
        """Axes, ticks and names. Only the first panel of a row has those of the metric."""
        left, right, bottom = self._left, self._left + self._width, self._top + self._height
        for share, text in self._up.ticks():
            y = self._y(share)
            yield Line(((left, y), (right, y)), FRAME, 1, 0.45)
            if first:
                yield Label(left - 8, y, fit_text(text, _LEFT - 12, 11), 11, "end", QUIET)
        if first:
            yield Label(20, self._top - 12, fit_text(self._up.name, self._width, 11), 11, "start", INK, bold=True)
        yield Line(((left, self._top), (left, bottom), (right, bottom)), FRAME, 1.5)
        yield from self._ticks(bottom)
        name = fit_text(self._across.name.lstrip("-"), self._width, 12)
        yield Label((left + right) / 2, bottom + 38, name, 12, "middle", INK, bold=True)

    def _ticks(self, bottom: float) -> Iterator[Shape]:
        """The ticks, without labels that would overlap."""
        ticks = self._across.ticks()
        room = (self._width - 2 * _MARGIN) / max(1, len(ticks) - 1 if len(ticks) > 1 else 1)
        free = -1e9
        for share, text in ticks:
            x = self._x(share)
            word = fit_text(text, max(room, 40) - 4, 11)
            half = text_width(word, 11) / 2
            yield Line(((x, bottom), (x, bottom + 4)), FRAME, 1.5)
            if x - half > free:
                yield Label(x, bottom + 16, word, 11, "middle", QUIET)
                free = x + half + 4

    def trials(self, view: SweepView, shades: Shades) -> Iterator[Shape]:
        """A dot for each trial, the best one on top."""
        radius = 4.5 if len(view.trials) <= _MANY else 3.2
        for trial in drawing_order(view):
            point = self._point(trial)
            if point is None:
                continue
            if counts(trial):
                yield Dot(*point, radius, shades.shade_of(trial), 0.85)
            else:
                yield Dot(*point, radius - 1, CUT, 0.45)
        best = None if view.best is None else self._point(view.best)
        if best is not None:
            yield Dot(*best, 6.5, BEST, ring="#ffffff")

    def _point(self, trial: TrialView) -> tuple[float, float] | None:
        values = flat(trial.parameters)
        if self._across.name not in values:
            return None
        share, up = self._across.place(values[self._across.name]), self._up.place(trial.best)
        if share is None or up is None:
            return None
        return self._x(share) + self._aside(trial), self._y(up)

    def _aside(self, trial: TrialView) -> float:
        """A small horizontal offset, fixed for each trial, so that trials of one category do not hide each other."""
        count = len(self._across.categories)
        if not count:
            return 0.0
        reach = min(14.0, 0.3 * self._width / count)
        return (trial.number * 0.618034 % 1 - 0.5) * 2 * reach

    def _x(self, share: float) -> float:
        margin = self._width / (2 * len(self._across.categories)) if self._across.categories else _MARGIN
        return self._left + margin + share * (self._width - 2 * margin)

    def _y(self, share: float) -> float:
        return self._top + self._height - _MARGIN - share * (self._height - 2 * _MARGIN)
