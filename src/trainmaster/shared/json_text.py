"""Long JSON texts: with orjson where it is installed, as it is with a server, else with Python's `json`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment]


def parse(text: bytes | str) -> Any:
    """The value in a text, with Python's words for numbers that JSON does not have (NaN). Raises ValueError.

    Only for texts whose whole numbers have 64 bits: orjson makes larger ones floats.

    >>> parse('{"loss": NaN}'), parse(b"[1, 0.5]")
    ({'loss': nan}, [1, 0.5])
    """
    if orjson is not None:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(text)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def write(value: Any) -> bytes:
    """A value as JSON in one line, with Python's words for numbers that JSON does not have.

    >>> write({"loss": float("nan")}), write([1, 0.5])
    (b'{"loss":NaN}', b'[1,0.5]')
    """
    if orjson is not None:
        # Python's own writer takes numbers of more than 64 bits, and halves of surrogate pairs.
        with suppress(TypeError):
            text = orjson.dumps(value)
            # It writes NaN as null.
            if b"null" not in text:
                return text
    return json.dumps(value, separators=(",", ":")).encode("ascii")
