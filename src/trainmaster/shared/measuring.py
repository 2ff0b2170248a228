"""Whether, and how often, agents measure what a run uses of its machines. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

VARIABLE = "TRAINMASTER_SYSTEM_METRICS"
"""Of the run, or of the dispatcher for all runs: off, on, or the seconds between two measurements."""
_OFF = frozenset({"off", "0", "no", "false"})
_ON = frozenset({"on", "yes", "true", ""})
_LEAST_SECONDS = 0.1


def find_sample_seconds(of_run: Mapping[str, str], of_dispatcher: Mapping[str, str]) -> float | None:
    """The seconds between two measurements: 0 for none, None for the usual ones.

    >>> [find_sample_seconds(of_run, {}) for of_run in ({}, {VARIABLE: "off"}, {VARIABLE: "5"})]
    [None, 0.0, 5.0]
    >>> find_sample_seconds({}, {VARIABLE: "off"}), find_sample_seconds({VARIABLE: "on"}, {VARIABLE: "off"})
    (0.0, None)
    """
    text = of_run.get(VARIABLE, of_dispatcher.get(VARIABLE, ""))
    try:
        return parse_sample_seconds(text)
    except ValueError:
        return None


def parse_sample_seconds(text: str) -> float | None:
    """The same of one value of the variable. Raises ValueError.

    >>> parse_sample_seconds("Off"), parse_sample_seconds("on"), parse_sample_seconds("0.01")
    (0.0, None, 0.1)
    """
    word = text.strip().lower()
    if word in _OFF:
        return 0.0
    if word in _ON:
        return None
    seconds = float(word)
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError(f"{text!r} is not a time")
    return max(seconds, _LEAST_SECONDS)
