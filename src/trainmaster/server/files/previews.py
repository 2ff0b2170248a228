"""The beginning of a file, for a page that shows it: text, rows of a table, or a picture. Pure.

Nothing of it is ever sent as a type that a browser runs: text and rows travel as JSON, and only pictures that cannot
contain scripts keep their type.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

from trainmaster.server.files.pictures import find_picture_type

MOST_BYTES = 1 << 20
_MOST_ROWS = 1000
_LONGEST_CELL = 1000

_TABLES: Mapping[str, str] = MappingProxyType({".csv": ",", ".tsv": "\t"})


def choose_kind(name: str, head: bytes) -> str:
    """How a file is best shown: `image`, `csv`, `text` or `none`."""
    if find_picture_type(head):
        return "image"
    if b"\0" in head[:8000]:
        return "none"
    return "csv" if any(name.lower().endswith(ending) for ending in _TABLES) else "text"


def show_text(head: bytes, size: int) -> dict[str, Any]:
    """The beginning of a text; bytes that are not UTF-8 become replacement characters."""
    return {"kind": "text", "text": head.decode("utf-8", "replace"), "size": size, "is_all": len(head) >= size}


def show_rows(name: str, head: bytes, size: int, count: int) -> dict[str, Any]:
    """The first rows of a table.

    >>> show_rows("a.csv", b"x,y\\n1,2\\n3,", 10, 10)["rows"]
    [['x', 'y'], ['1', '2'], ['3', '']]
    """
    separator = next((each for ending, each in _TABLES.items() if name.lower().endswith(ending)), ",")
    text = head.decode("utf-8", "replace")
    is_all = len(head) >= size
    if not is_all and "\n" in text:
        # The last line may be cut.
        text = text[: text.rindex("\n")]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    try:
        for row in islice(reader, min(count, _MOST_ROWS) + 1):
            rows.append([cell[:_LONGEST_CELL] for cell in row])
    except csv.Error:
        is_all = False
    wanted = min(count, _MOST_ROWS)
    return {"kind": "csv", "rows": rows[:wanted], "size": size, "is_all": is_all and len(rows) <= wanted}


def show_nothing(size: int) -> dict[str, Any]:
    """A file that cannot be shown."""
    return {"kind": "none", "size": size, "is_all": False}
