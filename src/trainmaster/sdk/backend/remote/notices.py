"""Notices about the connection to a server: one line on standard error. They come from threads, so they never raise."""

from __future__ import annotations

import contextlib
import sys


def notify(text: str) -> None:
    """Shows one line."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"trainmaster: {' '.join(text.split())}\n")
        sys.stderr.flush()
