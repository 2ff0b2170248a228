"""Recognises image files, and draws plots as images."""

import io

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.script.files import existing_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BEGINNINGS = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"BM",
    b"II*\x00",
    b"MM\x00*",
    b"II+\x00",
    b"MM\x00+",
)


def is_image(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes is a PNG, JPEG, GIF, BMP, TIFF, WebP or SVG.

    >>> is_image(b"GIF89a..."), is_image(b"hello")
    (True, False)
    """
    if beginning.startswith(_BEGINNINGS):
        return True
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return True
    text = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return text.startswith(b"<svg") or (text.startswith((b"<?xml", b"<!--", b"<!doctype svg")) and b"<svg" in text)


def image_file(path: object) -> str:
    """`path` as a str, if there is an image at it."""
    path = existing_file(path)
    with open(path, "rb") as file:
        if is_image(file.read(4096)):
            return path
    raise UserErrorException(
        "{!r} is not an image".format(path),
        cause="It is not a PNG, JPEG, GIF, BMP, TIFF, WebP or SVG.",
        hint="Use run.upload_file() for other files.",
    )


def draw(plot: "Any") -> "io.BytesIO":
    """A stream with the plot (matplotlib's pyplot, a figure, or an object in one) as PNG."""
    owner = plot if hasattr(plot, "savefig") else getattr(plot, "figure", None)
    if owner is None or not hasattr(owner, "savefig"):
        raise TrainmasterError(
            "the plot is a {}, which has no savefig".format(type(plot).__name__),
            hint="Give matplotlib.pyplot or a figure, or the path of an image file with path=.",
        )
    picture = io.BytesIO()
    owner.savefig(picture, format="png")
    picture.seek(0)
    return picture
