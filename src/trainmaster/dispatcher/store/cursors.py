"""Cursors: where a page of a search ended, as an opaque text for the client."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from trainmaster.job.errors import UserErrorException


@dataclass(frozen=True)
class Cursor:
    """The last row of a page. New runs do not move it."""

    segment: int
    """Which of the parts of an order: runs with a number, with a text, without a value."""
    keys: tuple[Any, ...]
    """What the row is sorted by."""


def dump_cursor(cursor: Cursor, query: str) -> str:
    """The cursor as text; it is valid only for the same query."""
    content = json.dumps([_digest(query), cursor.segment, *cursor.keys], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def load_cursor(text: str, query: str) -> Cursor | None:
    """The cursor that `dump_cursor` made; None for the first page."""
    if not text:
        return None
    try:
        digest, segment, *keys = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError, RecursionError):
        raise wrong_cursor() from None
    if digest != _digest(query):
        raise _make_error("It belongs to another filter or order.")
    if not (isinstance(segment, int) and all(map(_is_key, keys))):
        raise wrong_cursor()
    return Cursor(segment, tuple(keys))


def wrong_cursor() -> UserErrorException:
    """The error for a text that no search gave out."""
    return _make_error("It is not a cursor of a search.")


def _is_key(value: object) -> bool:
    """Whether it is a value that databases take."""
    if isinstance(value, bool):
        return False
    return abs(value) < 2**63 if isinstance(value, int) else isinstance(value, str | float | None)


def _make_error(cause: str) -> UserErrorException:
    return UserErrorException(
        "the cursor cannot be used", cause=cause, hint="Search again without a cursor, from the first page."
    )


def _digest(query: str) -> str:
    return sha256(query.encode("utf-8", "backslashreplace")).hexdigest()[:12]
