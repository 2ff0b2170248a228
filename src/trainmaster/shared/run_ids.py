"""Ids of new runs: readable, and the names of their folders."""

from __future__ import annotations

import os
import re
import time

_NOT_ALLOWED = re.compile(r"[^\w-]", re.ASCII)
_LONGEST_NAME = 200


def make_run_id(experiment: str) -> str:
    """The id of a new run: the experiment, the time, and something that makes it unique.

    >>> make_run_id("test/of 3.17").partition("_")[0]
    'test-of-3-17'
    """
    name = _NOT_ALLOWED.sub("-", experiment)[:_LONGEST_NAME].lstrip("-") or "run"
    return f"{name}_{int(time.time())}_{os.urandom(4).hex()}"
