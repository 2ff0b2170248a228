"""Metric values, texts and collections as the tables hold them."""

from __future__ import annotations

import json
import math
from hashlib import sha256
from typing import Any

FLOAT, INT, BOOL, TEXT, NULL, JSON = range(6)
"""The form of a value: how to read `number` and `text`."""

Stored = tuple[float | None, int, str | None]
"""number, form, text."""

_EXACT = 2**53
_LONGEST_INDEXED = 200
_LONGEST_NAME = 1000


def encode(value: Any) -> Stored:
    """`value` as number, form and text, so that `decode` gives it back with its type.

    NaN has no number (SQLite knows none, and it must not be anyone's minimum); an integer that a float cannot
    hold is kept as text beside its nearest float.
    """
    kind = type(value)
    if kind is float:
        return (None if value != value else value), FLOAT, None
    if kind is int:
        if -_EXACT <= value <= _EXACT:
            return float(value), INT, None
        return _nearest_float(value), INT, str(value)
    if kind is bool:
        return float(value), BOOL, None
    if kind is str:
        return None, TEXT, clean(value)
    if value is None:
        return None, NULL, None
    return None, JSON, dump(value)


def decode(number: float | None, form: int, text: str | None) -> Any:
    """The value that `encode` took."""
    if form == FLOAT:
        return math.nan if number is None else number
    if form == INT:
        return int(text) if text is not None else int(number or 0)
    if form == BOOL:
        return bool(number)
    if form == TEXT:
        return text
    return json.loads(text or "null") if form == JSON else None


def clean(text: str) -> str:
    """`text` without what no database takes: halves of surrogate pairs, and the zero character."""
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\0", "\\x00") if "\0" in text else text


def dump(value: Any) -> str:
    """`value` as JSON; what JSON does not know becomes its text."""
    return json.dumps(value, separators=(",", ":"), default=str)


def dump_collection(value: Any) -> str:
    """A list or mapping as JSON; an empty one as the empty text."""
    return dump(value) if value else ""


def label_index(value: Any) -> str:
    """What a tag's or property's value is found by: its text; the digest stands in for a long one."""
    text = clean(value) if isinstance(value, str) else dump(value)
    if len(text) <= _LONGEST_INDEXED:
        return text
    return text[:100] + "#" + sha256(text.encode()).hexdigest()


def name_index(name: str) -> str:
    """What a metric, tag or property is found by: its name; the digest stands in for a long one.

    A row of an index of PostgreSQL takes 2,700 bytes.
    """
    data = name.encode()
    return name if len(data) <= _LONGEST_NAME else f"{name[:100]}#{sha256(data).hexdigest()}"


def _nearest_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
