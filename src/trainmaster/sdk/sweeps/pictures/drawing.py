"""A picture as plain shapes, and the ways to look at it or keep it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainmaster.job.errors import UserErrorException

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Line:
    """Straight from point to point."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Curve:
    """From point to point, level at each."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A filled circle, or with a `ring` one that has a line around it."""

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
    """Text; `y` is the middle of its line. With a halo it can be read on lines."""

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
class Drawing:
    """A picture. Notebooks show it by themselves.

    >>> Drawing(10, 10, "nothing").svg().startswith("<svg ")
    True
    """

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...] = ()

    def svg(self) -> str:
        """The picture as SVG that needs nothing from outside."""
        from trainmaster.sdk.sweeps.pictures.svg import svg

        return svg(self)

    def png(self) -> bytes:
        """The picture as PNG, by matplotlib."""
        from trainmaster.sdk.sweeps.pictures.png import png

        return png(self)

    def save(self, path: str) -> None:
        """Writes the picture to a file that ends in .svg or .png."""
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".png"):
            raise UserErrorException(
                f"{path} is neither an .svg nor a .png file", hint="Name it picture.svg, for instance."
            )
        data = self.svg().encode() if ending == ".svg" else self.png()
        try:
            Path(path).write_bytes(data)
        except OSError as error:
            raise UserErrorException(f"{path} cannot be written: {error.strerror}") from None

    def _repr_svg_(self) -> str:
        return self.svg()
