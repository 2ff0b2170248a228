"""Answers to requests that do not fit what is there, with the facts a client needs to go on."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from trainmaster.job.errors import UserErrorException
from trainmaster.server.call import Call
from trainmaster.server.errors import describe_error


def answer_conflict(call: Call, headline: str, cause: str = "", hint: str = "", **facts: Any) -> Response:
    """The answer 409: an error like all others, and beside it the facts."""
    error = UserErrorException(headline, cause=cause, hint=hint)
    body = {**describe_error(error, 409, call.request_id), **facts}
    return Response(orjson.dumps(body), 409, media_type="application/json")
