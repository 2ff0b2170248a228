"""A picture as plain shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Line:
    """Straight lines from point to point."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Curve:
    """A curve from point to point, horizontal at each."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A filled circle; with a `ring`, outlined in that colour."""

    x: float
    y: float
    radius: float
    colour: str
    opacity: float = 1.0
    ring: str = ""


@dataclass(frozen=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    opacity: float = 1.0


@dataclass(frozen=True)
class Label:
    """Text. `y` is the middle of its line. A halo keeps it readable on top of lines."""

    x: float
    y: float
    text: str
    size: float = 11.0
    anchor: Anchor = "middle"
    colour: str = "#333a45"
    bold: bool = False
    halo: bool = False


Shape = Line | Curve | Dot | Box | Label


@dataclass(frozen=True)
class Picture:
    """The shapes of a picture, in the order in which they are drawn."""

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...] = ()
