"""A metric as a chart with axes: SVG without colours of its own, which the style of the page gives. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from trainmaster.sdk.sweeps.pictures.axes import Axis
from trainmaster.shared.metrics import finite_number
from trainmaster.shared.records import MetricSeries

WIDTH, HEIGHT = 420, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 24
LINES = 8
"""How many lines have a colour of their own."""
_WIDE_RATIO = 1000.0

Point = tuple[float, float]


def split_ranks(series: MetricSeries) -> dict[int | None, list[tuple[float, Any]]]:
    """The values with their step, or with their position if not all have a step; for each rank that logged one."""
    has_steps = len(series.steps) == len(series.values) and all(step is not None for step in series.steps)
    across: Sequence[Any] = series.steps if has_steps else series.index
    ranks = series.ranks or (None,) * len(series.values)
    found: dict[int | None, list[tuple[float, Any]]] = {}
    for x, value, rank in zip(across, series.values, ranks, strict=True):
        found.setdefault(rank, []).append((float(x), value))
    # Ranks may log the same step at different times.
    return {rank: sorted(points, key=lambda point: point[0]) for rank, points in found.items()}


def draw_chart(title: str, lines: Sequence[Sequence[tuple[float, Any]]]) -> str:
    """The lines in one chart. Where a value is not a finite number, the line has a gap.

    >>> draw_chart("loss", [[(0, 1.0), (1, 0.5), (2, float("nan")), (3, 0.2)]]).count("<path class='line")
    1
    >>> draw_chart("loss", [[(0, "nothing")]])
    ''
    """
    numbers = [[(x, finite_number(value)) for x, value in line] for line in lines]
    heights = [value for line in numbers for _, value in line if value is not None]
    if not heights:
        return ""
    widths = [x for line in numbers for x, _ in line]
    across = Axis("", min(widths), max(widths))
    up = _choose_axis(min(heights), max(heights))
    shown = escape(title)
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img' aria-label='{shown}'><title>{shown}</title>"
        f"{''.join(_grid(across, up))}{''.join(_draw_lines(numbers, across, up))}</svg>"
    )


def _choose_axis(low: float, high: float) -> Axis:
    return Axis("", low, high, logarithmic=low > 0 and high / low >= _WIDE_RATIO)


def _grid(across: Axis, up: Axis) -> Iterable[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for share, label in up.ticks():
        y = _down(share)
        yield f"<path class='grid' d='M{_LEFT} {y:.1f}H{right}'/>"
        yield f"<text x='{_LEFT - 6}' y='{y + 3.5:.1f}' text-anchor='end'>{escape(label)}</text>"
    yield f"<path class='axis' d='M{_LEFT} {bottom}H{right}'/>"
    for share, label in across.ticks():
        if "." in label:
            # Steps are whole numbers.
            continue
        yield f"<text x='{_right(share):.1f}' y='{bottom + 15}' text-anchor='middle'>{escape(label)}</text>"


def _draw_lines(lines: Sequence[Sequence[tuple[float, float | None]]], across: Axis, up: Axis) -> Iterable[str]:
    for number, line in enumerate(lines):
        kind = f"c{number}" if number < LINES else "more"
        parts = [part for part in _split_parts(line, across, up) if part]
        path = "".join(_write_path(part) for part in parts if len(part) > 1)
        if path:
            yield f"<path class='line {kind}' d='{path}'/>"
        for part in parts:
            if len(part) == 1:
                yield f"<circle class='dot {kind}' cx='{part[0][0]:.1f}' cy='{part[0][1]:.1f}' r='2.5'/>"


def _split_parts(line: Sequence[tuple[float, float | None]], across: Axis, up: Axis) -> list[list[Point]]:
    """The points of a line, split where a number is missing."""
    parts: list[list[Point]] = [[]]
    for x, value in line:
        place, height = across.place(x), None if value is None else up.place(value)
        if place is None or height is None:
            parts.append([])
        else:
            parts[-1].append((_right(place), _down(height)))
    return parts


def _write_path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _right(share: float) -> float:
    return _LEFT + share * (WIDTH - _LEFT - _RIGHT)


def _down(share: float) -> float:
    return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)
