"""Warnings that point to the user's own line, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings

_OWN = ("trainmaster", "azureml")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns about the line of the user's program that led here."""
    warnings.warn(message, category, stacklevel=_depth_of_user())


def warn_deprecated(old: str, new: str) -> None:
    """Says that `old` still works, and what to write instead."""
    warn(f"{old} is deprecated; {new}", DeprecationWarning)


def _depth_of_user() -> int:
    # Depth 1 is the function that calls warnings.warn.
    depth = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OWN:
        frame = frame.f_back
        depth += 1
    return depth
