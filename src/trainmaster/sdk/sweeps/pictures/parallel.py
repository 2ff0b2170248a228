"""Parallel coordinates: a line for each trial through its parameters to the metric. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from trainmaster.sdk.sweeps.pictures.axes import Axis, metric_axis, parameter_axes
from trainmaster.sdk.sweeps.pictures.colours import BEST, CUT, FRAME, INK, QUIET
from trainmaster.sdk.sweeps.pictures.drawing import Drawing
from trainmaster.sdk.sweeps.pictures.shapes import Box, Curve, Dot, Label, Line, Point, Shape
from trainmaster.sdk.sweeps.pictures.trials import Shades, counts, drawing_order, fit_text, heading, nothing
from trainmaster.tuning.space import flat
from trainmaster.tuning.view import SweepView, TrialView, value_in_words

_HEIGHT = 460.0
_TOP, _BOTTOM = 104.0, 424.0
_LEFT, _RIGHT = 96.0, 74.0
_LEAST_GAP, _MOST_GAP = 128.0, 260.0
_LEAST_WIDTH = 720.0
_SHADES = 48
_MANY, _FEW = 150, 12


def parallel(view: SweepView) -> Drawing:
    """The picture of a sweep."""
    axes = [*parameter_axes(view), metric_axis(view)]
    gaps = len(axes) - 1
    gap = min(_MOST_GAP, max(_LEAST_GAP, (960 - _LEFT - _RIGHT) / gaps))
    width = max(_LEAST_WIDTH, _LEFT + gaps * gap + _RIGHT)
    left = _LEFT + max(0.0, (width - _LEFT - _RIGHT - gaps * gap) / 2)
    places = [left + n * gap for n in range(len(axes))]
    # The axes are drawn over all lines, and the values of the best trial over the axes.
    shapes: list[Shape] = [*heading(view, width, 20)]
    shades = Shades(view, axes[-1])
    shapes += _lines(view, axes, places, shades)
    shapes += _best_line(view, axes, places)
    for n, (axis, x) in enumerate(zip(axes, places, strict=True)):
        shapes += _metric(shades, axis, x, gap) if n == gaps else _parameter(axis, x, gap)
    shapes += _best_values(view, axes, places)
    shapes += nothing(view, width, _HEIGHT)
    return Drawing(width, _HEIGHT, f"{view.experiment}: parallel coordinates of {view.run_id}", tuple(shapes))


def _lines(view: SweepView, axes: Sequence[Axis], places: Sequence[float], shades: Shades) -> Iterator[Shape]:
    count = len(view.trials)
    width = 2.0 if count <= _FEW else 1.3 if count <= _MANY else 1.0
    opacity = 0.95 if count <= _FEW else 0.8 if count <= _MANY else 0.65
    for trial in drawing_order(view):
        for points in _ways(trial, axes, places):
            if counts(trial):
                yield Curve(points, shades.shade_of(trial), width, opacity)
            else:
                yield Curve(points, CUT, min(width, 1.2), 0.4 if count <= _MANY else 0.25)
        for bridge in _bridges(trial, axes, places):
            yield Curve(bridge, shades.shade_of(trial), width, 0.4 * opacity)


def _ways(trial: TrialView, axes: Sequence[Axis], places: Sequence[float]) -> Iterator[tuple[Point, ...]]:
    """The line of a trial, interrupted at axes of parameters that it does not have."""
    part: list[Point] = []
    for point in (*_points(trial, axes, places), None):
        if point is not None:
            part.append(point)
            continue
        if len(part) > 1:
            yield tuple(part)
        part = []


def _bridges(trial: TrialView, axes: Sequence[Axis], places: Sequence[float]) -> Iterator[tuple[Point, Point]]:
    """The connections between the parts of an interrupted line."""
    points = _points(trial, axes, places)
    there = [n for n, point in enumerate(points) if point is not None]
    for first, second in pairwise(there):
        one, other = points[first], points[second]
        if second - first > 1 and one is not None and other is not None:
            yield one, other


def _points(trial: TrialView, axes: Sequence[Axis], places: Sequence[float]) -> list[Point | None]:
    values = flat(trial.parameters)
    shares = [axis.place(values[axis.name]) if axis.name in values else None for axis in axes[:-1]]
    shares.append(axes[-1].place(trial.best))
    return [None if share is None else (x, _down(share)) for x, share in zip(places, shares, strict=True)]


def _parameter(axis: Axis, x: float, gap: float) -> Iterator[Shape]:
    yield Line(((x, _TOP), (x, _BOTTOM)), FRAME, 1.5)
    yield Label(x, _TOP - 22, fit_text(axis.name.lstrip("-"), gap - 12, 12), 12, "middle", INK, bold=True)
    for share, text in axis.ticks():
        yield Line(((x - 4, _down(share)), (x, _down(share))), FRAME, 1.5)
        yield Label(x - 8, _down(share), fit_text(text, gap * 0.6, 11), 11, "end", QUIET, halo=True)


def _metric(shades: Shades, axis: Axis, x: float, gap: float) -> Iterator[Shape]:
    """The last axis, with the colours of the lines."""
    tall = (_BOTTOM - _TOP) / _SHADES
    for n in range(_SHADES):
        yield Box(x, _TOP + n * tall, 9, tall + 0.3, shades.shade_at(1 - (n + 0.5) / _SHADES))
    yield Label(x, _TOP - 22, fit_text(axis.name, gap - 4, 12), 12, "middle", INK, bold=True)
    for share, text in axis.ticks():
        yield Line(((x + 9, _down(share)), (x + 13, _down(share))), FRAME, 1.5)
        yield Label(x + 17, _down(share), fit_text(text, _RIGHT - 14, 11), 11, "start", QUIET, halo=True)


def _best_line(view: SweepView, axes: Sequence[Axis], places: Sequence[float]) -> Iterator[Shape]:
    best = view.best
    if best is None:
        return
    for bridge in _bridges(best, axes, places):
        yield Curve(bridge, BEST, 3, 0.4)
    for points in _ways(best, axes, places):
        yield Curve(points, "#ffffff", 6, 0.85)
        yield Curve(points, BEST, 3)


def _best_values(view: SweepView, axes: Sequence[Axis], places: Sequence[float]) -> Iterator[Shape]:
    best = view.best
    if best is None:
        return
    values = flat(best.parameters)
    for axis, point in zip(axes, _points(best, axes, places), strict=True):
        if point is None:
            continue
        yield Dot(*point, 4.5, BEST, ring="#ffffff")
        if axis is not axes[-1]:
            text = fit_text(value_in_words(values[axis.name]), 96, 11)
            yield Label(point[0] + 8, point[1] - 10, text, 11, "start", BEST, bold=True, halo=True)


def _down(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)
