"""A picture that notebooks show, and that can be saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.sweeps.pictures.png import png
from trainmaster.sdk.sweeps.pictures.shapes import Picture
from trainmaster.sdk.sweeps.pictures.svg import svg


@dataclass(frozen=True)
class Drawing(Picture):
    """A picture. Notebooks show it by themselves.

    >>> Drawing(10, 10, "nothing").svg().startswith("<svg ")
    True
    """

    def svg(self) -> str:
        """The picture as self-contained SVG."""
        return svg(self)

    def png(self) -> bytes:
        """The picture as PNG, by matplotlib."""
        return png(self)

    def save(self, path: str) -> None:
        """Writes the picture to a file that ends in .svg or .png."""
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".png"):
            raise UserErrorException(
                f"{path} is neither an .svg nor a .png file", hint="Name it picture.svg, for example."
            )
        data = self.svg().encode() if ending == ".svg" else self.png()
        try:
            Path(path).write_bytes(data)
        except OSError as error:
            raise UserErrorException(f"{path} cannot be written: {error.strerror}") from None

    def _repr_svg_(self) -> str:
        return self.svg()
