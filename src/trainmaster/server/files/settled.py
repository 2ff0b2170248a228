"""Files and folders that have not changed for a while: what was read of them is kept as long as they stay the same."""

from __future__ import annotations

import os
import time

_SECONDS = 1.0
"""The clock of a file system may stand still for some milliseconds, so a change may not be visible right after one."""


def describe_settled(path: str) -> tuple[int, ...] | None:
    """What changes with a file or folder; None if it is missing, or was changed just now."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return None
    if time.time() - max(facts.st_mtime, facts.st_ctime) < _SECONDS:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
