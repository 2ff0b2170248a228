"""Warnings that point to the user's own line, under the name by which the estimators know them."""

from __future__ import annotations

from trainmaster.notices import warn, warn_deprecated

__all__ = ["warn", "warn_deprecated"]
