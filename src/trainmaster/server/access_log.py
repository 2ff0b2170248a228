"""The access log: one line of JSON per request, without queries, tokens and bodies."""

from __future__ import annotations

import logging
import time

import orjson

log = logging.getLogger("trainmaster.access")


def write_access(
    *,
    method: str,
    path: str,
    status: int,
    seconds: float,
    caller: str,
    client: str,
    request_id: str,
    workspace: str = "",
    operation: str = "",
) -> None:
    """Write one line. `path` has no query: it may contain a secret, such as a code of a sign-in."""
    if not log.isEnabledFor(logging.INFO):
        return
    entry = {
        "time": round(time.time(), 3),
        "request_id": request_id,
        "client": client,
        "user": caller,
        "method": method,
        "path": path,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "workspace": workspace,
        "operation": operation,
    }
    log.info("%s", orjson.dumps({key: value for key, value in entry.items() if value != ""}).decode())
