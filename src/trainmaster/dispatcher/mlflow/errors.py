"""MLflow's errors: a code, which decides the HTTP status, and a message."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from trainmaster.job.errors import TrainmasterError

ABSENT = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"
WRONG = "INVALID_PARAMETER_VALUE"
WRONG_STATE = "INVALID_STATE"
BAD_REQUEST = "BAD_REQUEST"
NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
NO_ENDPOINT = "ENDPOINT_NOT_FOUND"
INTERNAL = "INTERNAL_ERROR"

_STATUS: Mapping[str, int] = MappingProxyType(
    {
        ABSENT: 404,
        EXISTS: 400,
        WRONG: 400,
        BAD_REQUEST: 400,
        WRONG_STATE: 500,
        NO_ENDPOINT: 404,
        NOT_IMPLEMENTED: 501,
        INTERNAL: 500,
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "REQUEST_LIMIT_EXCEEDED": 429,
        "TEMPORARILY_UNAVAILABLE": 503,
    }
)


class MlflowError(TrainmasterError):
    """An error that a client of MLflow understands."""

    def __init__(self, code: str, message: str, error_class: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.error_class = error_class
        """A word that is more precise than the usual one for the code."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        return _STATUS.get(self.code, 500)


class ArtifactPathError(MlflowError):
    """A path that cannot be that of a file. MLflow 3 has the message under another name, too."""

    def __init__(self, message: str) -> None:
        super().__init__(WRONG, message)


ATTRIBUTE_NOT_FOUND = "ATTRIBUTE_NOT_FOUND"
_STATES: Mapping[str, str] = MappingProxyType({ATTRIBUTE_NOT_FOUND: "KAM04"})
"""Class to the SQL state that it has instead of that of the code."""
_CLASSES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        ABSENT: ("KAM00", "RESOURCE_NOT_FOUND"),
        NO_ENDPOINT: ("KAM00", "RESOURCE_NOT_FOUND"),
        EXISTS: ("KAM00", "RESOURCE_ALREADY_EXISTS"),
        WRONG: ("KAM00", "INVALID_PARAMETER_VALUE"),
        BAD_REQUEST: ("KAM00", "INVALID_PARAMETER_VALUE"),
        WRONG_STATE: ("XXM00", "CLIENT_INTERNAL_ERROR"),
        INTERNAL: ("XXM00", "CLIENT_INTERNAL_ERROR"),
        "TEMPORARILY_UNAVAILABLE": ("XXM00", "CLIENT_INTERNAL_ERROR"),
        "PERMISSION_DENIED": ("KAM00", "PERMISSION_DENIED"),
    }
)
"""Code to the two further words that MLflow 3 has for it. Other codes have none."""


def describe_error(code: str, message: str, error_class: str = "") -> dict[str, Any]:
    """The body of the answer."""
    body = {"error_code": code, "message": message}
    if error_class:
        body["sqlstate"], body["error_class"] = _STATES[error_class], error_class
    elif code in _CLASSES:
        body["sqlstate"], body["error_class"] = _CLASSES[code]
    return body


def code_of(status: int) -> str:
    """The code for an error that only has a status.

    >>> code_of(403), code_of(413)
    ('PERMISSION_DENIED', 'BAD_REQUEST')
    """
    codes = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: NO_ENDPOINT, 501: NOT_IMPLEMENTED}
    codes |= {429: "REQUEST_LIMIT_EXCEEDED", 503: "TEMPORARILY_UNAVAILABLE"}
    return codes.get(status, BAD_REQUEST if status < 500 else INTERNAL)
