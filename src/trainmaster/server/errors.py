"""Errors as the server answers them: a status, and one JSON object with headline, cause, hint and request id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.dispatcher.mlflow.errors import MlflowError
from trainmaster.job import errors
from trainmaster.job.errors import AuthenticationException, ServiceException, TrainmasterError, UserErrorException


class UnknownNameError(UserErrorException):
    """There is no user, token or member of this name."""


_STATUS: Mapping[type[TrainmasterError], int] = {
    AuthenticationException: 403,
    UnknownNameError: 404,
    errors.RunNotFoundException: 404,
    errors.ModelNotFoundException: 404,
    errors.ModelPathNotFoundException: 404,
    # The dispatcher failed, or its machine has a problem.
    ServiceException: 500,
}

_NOUNS = "compute target|dataset|datastore|environment|image|model|package|service|sweep|version [^ ]+ of"
_MISSING = re.compile(rf"(\w+NotFound: )?there is no ({_NOUNS}) ")

_CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "not_signed_in",
    403: "not_allowed",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "too_slow",
    409: "conflict",
    411: "length_required",
    412: "precondition_failed",
    413: "too_large",
    415: "unsupported_media_type",
    416: "range_not_satisfiable",
    421: "unknown_host",
    422: "unprocessable",
    429: "too_many_requests",
    500: "failed",
    503: "unavailable",
    507: "disk_full",
}


class HttpError(Exception):
    """An error of the server itself: a status, and the error that the SDK raises for it."""

    def __init__(self, status: int, error: TrainmasterError, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = dict(headers or {})


def refuse(status: int, headline: str, cause: str = "", hint: str = "", **headers: str) -> HttpError:
    """The error for a request that is refused with this status. Underscores in names of headers become dashes."""
    kind = {401: AuthenticationException, 403: AuthenticationException, 503: ServiceException, 500: ServiceException}
    error = kind.get(status, UserErrorException)(headline, cause=cause, hint=hint)
    return HttpError(status, error, {name.replace("_", "-"): value for name, value in headers.items()})


def status_of(error: TrainmasterError) -> int:
    """The HTTP status for an error of an operation.

    >>> status_of(UserErrorException("there is no dataset 'mnist' in this workspace"))
    404
    """
    if isinstance(error, MlflowError):
        return error.status
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    # v1 has classes only for missing runs and models.
    return 404 if _MISSING.match(error.headline) else 400


def describe_error(error: TrainmasterError, status: int, request_id: str) -> dict[str, Any]:
    """The body of the answer."""
    return {"error": {"code": _CODES.get(status, "failed"), **error.to_wire(), "request_id": request_id}}
