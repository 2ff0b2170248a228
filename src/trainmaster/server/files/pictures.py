"""Which files are pictures that a browser may show: by their bytes, not by their names. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LARGEST_PICTURE = 32 << 20

_PICTURES: Mapping[bytes, str] = MappingProxyType(
    {
        b"\x89PNG\r\n\x1a\n": "image/png",
        b"\xff\xd8\xff": "image/jpeg",
        b"GIF87a": "image/gif",
        b"GIF89a": "image/gif",
    }
)


def find_picture_type(head: bytes) -> str | None:
    """The type of a picture by its first bytes; None for anything else, SVG included, which may contain scripts.

    >>> find_picture_type(b"GIF89a..."), find_picture_type(b"<svg onload=...")
    ('image/gif', None)
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES.items() if head.startswith(start)), None)
