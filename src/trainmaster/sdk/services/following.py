"""Waiting for a deployment or an image, with its log as it grows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.run.logs import Print
from trainmaster.shared.log_texts import LogPlace
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

# How long the dispatcher may keep one question.
_POLL_SECONDS = 30.0


def wait_until_settled(
    workspace: Workspace,
    request: tuple[str, Mapping[str, Any]],
    show: Print | None,
    limit: float | None,
) -> dict[str, Any]:
    """Asks the operation `request`, which waits for a change, until its answer is settled; returns that answer.

    Meanwhile what the log gains is shown. Raises WebserviceException after `limit` seconds.
    """
    op, args = request
    place = to_plain(LogPlace())
    end = None if limit is None else time.monotonic() + limit
    with workspace.backend.open_connection() as connection:
        while True:
            rest = _POLL_SECONDS if end is None else max(0.0, min(_POLL_SECONDS, end - time.monotonic()))
            answer: dict[str, Any] = connection.call(op, **args, log=place, seconds=rest)
            place = answer["log"]["next"]
            if show is not None and answer["log"]["text"]:
                show(answer["log"]["text"])
            if answer["settled"]:
                return answer
            if end is not None and time.monotonic() >= end:
                break
    raise WebserviceException(
        f"service {args['name']} is not ready after {limit:g} seconds",
        hint="Its deployment continues; wait again, or read get_logs().",
    )
