"""A picture as PNG, drawn by matplotlib."""

from __future__ import annotations

import io
from typing import Any

from trainmaster.job.errors import RunEnvironmentException
from trainmaster.sdk.sweeps.pictures.shapes import Box, Curve, Dot, Label, Line, Picture, Shape

_DOTS_PER_INCH = 100.0
_SCALE = 2
_ALIGNED = {"start": "left", "middle": "center", "end": "right"}


def png(picture: Picture) -> bytes:
    """The picture at twice its size, for sharp text."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RunEnvironmentException(
            "a PNG needs matplotlib, which is not installed",
            inner_exception=error,
            hint="Run pip install 'trainmaster[plot]', or save the picture as .svg.",
        ) from None
    figure = Figure(figsize=(picture.width / _DOTS_PER_INCH, picture.height / _DOTS_PER_INCH), dpi=_DOTS_PER_INCH)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    axes.axis("off")
    for order, shape in enumerate(picture.shapes):
        _draw(axes, shape, order)
    data = io.BytesIO()
    canvas.print_figure(data, format="png", dpi=_DOTS_PER_INCH * _SCALE, facecolor="white", metadata={"Software": None})
    return data.getvalue()


def _draw(axes: Any, shape: Shape, order: int) -> None:
    if isinstance(shape, Label):
        _write(axes, shape, order)
        return
    from matplotlib.patches import Circle, PathPatch, Rectangle
    from matplotlib.path import Path

    if isinstance(shape, Box):
        axes.add_patch(
            Rectangle(
                (shape.x, shape.y),
                shape.width,
                shape.height,
                color=shape.colour,
                lw=0,
                alpha=shape.opacity,
                zorder=order,
            )
        )
    elif isinstance(shape, Dot):
        axes.add_patch(
            Circle((shape.x, shape.y), shape.radius, facecolor=shape.colour, edgecolor=shape.ring or "none",
                   lw=_points(1.5) if shape.ring else 0, alpha=shape.opacity, zorder=order)
        )  # fmt: skip
    else:
        path = Path(*_vertices(Path, shape))
        axes.add_patch(
            PathPatch(path, fill=False, edgecolor=shape.colour, lw=_points(shape.width), alpha=shape.opacity,
                      joinstyle="round", capstyle="butt", zorder=order)
        )  # fmt: skip


def _vertices(path: Any, shape: Line | Curve) -> tuple[list[tuple[float, float]], list[int]]:
    x, y = shape.points[0]
    points, codes = [(x, y)], [path.MOVETO]
    for nx, ny in shape.points[1:]:
        if isinstance(shape, Line):
            points.append((nx, ny))
            codes.append(path.LINETO)
        else:
            points += [((x + nx) / 2, y), ((x + nx) / 2, ny), (nx, ny)]
            codes += [path.CURVE4] * 3
        x, y = nx, ny
    return points, codes


def _write(axes: Any, label: Label, order: int) -> None:
    from matplotlib.patheffects import withStroke

    axes.text(
        label.x, label.y, _plain(label.text), fontsize=_points(label.size), color=label.colour, zorder=order,
        ha=_ALIGNED[label.anchor], va="center", fontweight="bold" if label.bold else "normal",
        path_effects=[withStroke(linewidth=_points(3), foreground="white")] if label.halo else None,
        parse_math=False,
    )  # fmt: skip


def _points(pixels: float) -> float:
    """Converts pixels to matplotlib's points, 72 per inch."""
    return pixels * 72 / _DOTS_PER_INCH


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
