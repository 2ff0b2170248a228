"""The built files of the studio: one folder that is named by a digest of what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BUILT = Path(__file__).with_name("built")
INDEX = "index.html"
_DIGEST = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class Pages:
    """What browsers get."""

    digest: str
    files: Mapping[str, bytes]
    """Name to contents. There are no folders."""


@cache
def read_pages() -> Pages | None:
    """The files, or nothing in a checkout whose pages were never built."""
    try:
        folders = [each for each in BUILT.iterdir() if _DIGEST.fullmatch(each.name)]
    except FileNotFoundError:
        return None
    if not folders:
        return None
    newest = max(folders, key=lambda each: each.stat().st_mtime)
    return Pages(newest.name, {each.name: each.read_bytes() for each in newest.iterdir()})
