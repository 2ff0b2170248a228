"""The error for what v1's datasets could do and these cannot."""

from __future__ import annotations

from typing import NoReturn


def not_here(method: str, instead: str) -> NoReturn:
    """Refuse, and say what to use."""
    raise NotImplementedError(f"{method} is not part of Trainmaster. {instead}")
