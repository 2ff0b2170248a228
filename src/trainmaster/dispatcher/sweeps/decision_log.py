"""The decisions of a sweep's policy, as its log has them. Pure."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) "
    r"(?P<reason>interval (?P<interval>\d{1,15}): run_(?P<number>\d{1,15}) .*: (?P<what>cancelled|continues))"
)


@dataclass(frozen=True)
class SweepDecision:
    """What the policy decided about a trial."""

    number: int
    """Of the trial."""
    run_id: str
    interval: int
    """How many values the trial had reported."""
    is_cut: bool
    """Whether the trial was ended."""
    reason: str
    """With the numbers that were compared."""
    decided_at: float | None = None


@dataclass(frozen=True)
class SweepDecisions:
    """Decisions of a sweep's policy, newest first."""

    decisions: tuple[SweepDecision, ...]
    total: int


def read_decisions(text: str, run_ids: Mapping[int, str]) -> list[SweepDecision]:
    """The decisions in a log, oldest first. `run_ids` has the run of each trial.

    >>> line = "2026-11-17 12:00:00 interval 2: run_3 best 0.1 < 0.2: cancelled"
    >>> read_decisions(line, {3: "sweep_3"})[0].is_cut
    True
    """
    found = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            number = int(match["number"])
            found.append(
                SweepDecision(
                    number,
                    run_ids.get(number, ""),
                    int(match["interval"]),
                    match["what"] == "cancelled",
                    match["reason"],
                    _read_time(match["time"]),
                )
            )
    return found


def _read_time(text: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S")))
    except ValueError:
        return None
