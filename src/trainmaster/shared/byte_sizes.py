"""Sizes as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)?", re.IGNORECASE)
_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def parse_size(text: str) -> int | None:
    """The bytes that a text means; None if it is no size.

    >>> parse_size("1.5GB"), parse_size("64 mb"), parse_size("much")
    (1610612736, 67108864, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else round(float(found[1]) * _UNITS[(found[2] or "").upper()])
