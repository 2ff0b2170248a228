"""Page tokens that say how many results the pages before had, as MLflow writes them."""

from __future__ import annotations

import base64
import binascii
import json

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError

_LARGEST = 2**53


def write_offset(offset: int) -> str:
    """The token of the page that begins there.

    >>> read_offset(write_offset(25)), read_offset("")
    (25, 0)
    """
    return base64.b64encode(json.dumps({"offset": offset}).encode()).decode()


def read_offset(token: str) -> int:
    """Where the page of a token begins."""
    if not token:
        return 0
    try:
        decoded = base64.b64decode(token)
    except (binascii.Error, ValueError):
        raise MlflowError(WRONG, "Invalid page token, could not base64-decode") from None
    try:
        found = json.loads(decoded)
    except (ValueError, RecursionError):
        raise MlflowError(WRONG, f"Invalid page token, decoded value={decoded!r}") from None
    offset = found.get("offset") if isinstance(found, dict) else None
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 < offset < _LARGEST:
        raise MlflowError(WRONG, f"Invalid page token, parsed value={found}")
    return offset
