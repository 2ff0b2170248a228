"""What a status of the server means: an error of ours, or a pause before the next attempt. Pure."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any

from trainmaster.job.errors import (
    AuthenticationException,
    ServiceException,
    TrainmasterError,
    UserErrorException,
    from_wire,
)


class UnavailableException(ServiceException):
    """The server cannot be reached, or cannot answer now. The same request may succeed later."""


# Too many requests; a gateway without its server; a server that starts or ends; one that took too long.
_TRANSIENT = frozenset({429, 502, 503, 504})
_LONGEST_PAUSE = 60.0

_KINDS: Mapping[int, type[TrainmasterError]] = {
    401: AuthenticationException,
    403: AuthenticationException,
    400: UserErrorException,
    404: UserErrorException,
    409: UserErrorException,
    413: UserErrorException,
    422: UserErrorException,
}


def retry_pause(status: int, headers: Mapping[str, str]) -> float | None:
    """Seconds to wait before the request is sent again; None if that would not help.

    >>> retry_pause(503, {"retry-after": "2"}), retry_pause(502, {}), retry_pause(404, {})
    (2.0, 0.0, None)
    """
    # 409 with a time: another server of the same database still carries out the same request.
    if status not in _TRANSIENT and not (status == 409 and "retry-after" in headers):
        return None
    return min(_LONGEST_PAUSE, _retry_after(headers.get("retry-after", "")))


def _retry_after(value: str) -> float:
    """Seconds, from a number or a date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, IndexError):
        return 0.0


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> TrainmasterError:
    """The error that an answer reports, in the class that the same mistake raises at home."""
    data = _error_in(body)
    if data is None:
        return _unknown(status, headers, body)
    wire = {name: str(value) for name, value in data.items() if value is not None}
    if "type" not in wire:
        wire["type"] = _KINDS.get(status, ServiceException).__name__
    error = from_wire(wire)
    if status in _TRANSIENT:
        error = UnavailableException(error.headline, cause=error.cause, hint=error.hint)
    if status >= 500 and wire.get("request_id"):
        error = type(error)(error.headline, cause=_join(error.cause, wire["request_id"]), hint=error.hint)
    return error


def _join(cause: str, request_id: str) -> str:
    return f"{cause}\nThe server's log has more about request {request_id}.".strip()


def _error_in(body: bytes) -> dict[str, Any] | None:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return error if isinstance(error, dict) and "headline" in error else None


def _unknown(status: int, headers: Mapping[str, str], body: bytes) -> TrainmasterError:
    """An answer that no Trainmaster server sends: from a proxy, or from another program."""
    kind = UnavailableException if status in _TRANSIENT else _KINDS.get(status, ServiceException)
    request_id = headers.get("x-request-id", "")
    return kind(
        f"the server answered with status {status}",
        cause=body[:200].decode("utf-8", "replace").strip() or (f"request {request_id}" if request_id else ""),
        hint="Check that the address is that of a Trainmaster server.",
    )
