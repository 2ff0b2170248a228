"""Waiting for a deployment or an image, with its log as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainmaster.job.errors import WebserviceException
from trainmaster.sdk.backend.local.following import LongPoll, follow
from trainmaster.sdk.growing_text import GrowingText
from trainmaster.sdk.run.logs import Print
from trainmaster.shared.folders import WorkspaceFolder


def wait_until_settled(
    workspace: WorkspaceFolder,
    request: tuple[str, Mapping[str, Any]],
    is_settled: Callable[[Mapping[str, Any]], bool],
    log: Path,
    show: Print | None,
    limit: float | None,
) -> dict[str, Any]:
    """Asks the operation `request`, which waits for a change, until its answer is settled.

    Meanwhile what the log gains is shown. Raises WebserviceException after `limit` seconds.
    """
    text = GrowingText(log)
    end = None if limit is None else time.monotonic() + limit
    with LongPoll(workspace, *request, end) as answers:
        for answer in follow(answers, [] if show is None else [log.parent]):
            if show is not None:
                for part in text.read_new():
                    show(part)
            if answer is None:
                continue
            if is_settled(answer):
                return answer
            if end is not None and time.monotonic() >= end:
                break
    raise WebserviceException(
        f"service {request[1]['name']} is not ready after {limit:g} seconds",
        hint="Its deployment continues; wait again, or read get_logs().",
    )
