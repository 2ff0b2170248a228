"""A series of numbers as a small, self-contained SVG chart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from trainmaster.shared.metrics import finite_number

WIDTH, HEIGHT = 240, 72
_MARGIN = 5
# Readable on white and on black, and distinguishable with colour blindness.
_COLOURS = ("#0b84d8", "#d9731a", "#12a074", "#c2539b", "#8d6e2f", "#6f7bd9", "#b33c3c", "#5f8a8b")

Point = tuple[float, float]


def chart(title: str, lines: Sequence[Sequence[Any]]) -> str:
    """The lines in one chart, each from left to right. Where a value is not a finite number, the line has a gap.

    >>> chart("loss", [[1, 2]]).count("<polyline")
    1
    >>> chart("loss", [[]])
    ''
    """
    series = [[finite_number(value) for value in line] for line in lines]
    finite = [number for line in series for number in line if number is not None]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    longest = max(len(line) for line in series)
    drawn = [
        _stroke(part, _COLOURS[n % len(_COLOURS)])
        for n, line in enumerate(series)
        for part in _parts(line, longest, low, high)
    ]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="currentColor" stroke-opacity=".25"/>{"".join(drawn)}</svg>'
    )


def _parts(line: Sequence[float | None], longest: int, low: float, high: float) -> list[list[Point]]:
    """The points of a line, split where a number is missing."""
    parts: list[list[Point]] = [[]]
    for n, number in enumerate(line):
        if number is None:
            parts.append([])
        else:
            parts[-1].append((_across(n, longest), _down(number, low, high)))
    return [part for part in parts if part]


def _across(n: int, longest: int) -> float:
    return WIDTH / 2 if longest < 2 else _MARGIN + n * (WIDTH - 2 * _MARGIN) / (longest - 1)


def _down(number: float, low: float, high: float) -> float:
    # Halved first, because the difference of two large floats may overflow.
    share = 0.5 if low == high else (number / 2 - low / 2) / (high / 2 - low / 2)
    return HEIGHT - _MARGIN - share * (HEIGHT - 2 * _MARGIN)


def _stroke(part: Sequence[Point], colour: str) -> str:
    if len(part) == 1:
        return f'<circle cx="{part[0][0]:.1f}" cy="{part[0][1]:.1f}" r="2.5" fill="{colour}"/>'
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in part)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"/>'
