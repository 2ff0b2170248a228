"""Marks: the state that `run.complete()` or `run.fail()` gives a submitted run (docs/internals/run-lifecycle.md).

A mark is stored as a property of the run, which can be written once. When the script ends, it becomes the run's state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.shared.records import RunError, Status
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

PROPERTY = "trainmaster.mark"
STATES = frozenset({Status.COMPLETED, Status.FAILED})


@dataclass(frozen=True)
class Mark:
    """A state, and for Failed the error that the caller gave, if any."""

    status: Status
    error: RunError | None = None

    @property
    def notice(self) -> str:
        """The warning that the run gets when it is marked."""
        return f"marked as {self.status} from outside: that is its state once its script has ended"


def mark_property(mark: Mark) -> dict[str, str]:
    """The property that stores a mark."""
    return {PROPERTY: json.dumps(to_plain(mark), sort_keys=True)}


def mark_of(properties: Mapping[str, str]) -> Mark | None:
    """The mark in the properties of a run, if there is one."""
    try:
        mark = from_plain(Mark, json.loads(properties[PROPERTY]))
    except (KeyError, ValueError, PlainDataError):
        return None
    return mark if mark.status in STATES else None


def apply_mark(end: Outcome, mark: Mark | None) -> Outcome:
    """Replaces the state of an outcome by that of the mark; a warning has the state without the mark."""
    if mark is None:
        return end
    return replace(end, status=mark.status, error=_error(end, mark), warnings=(*end.warnings, *_differs(end, mark)))


def _error(end: Outcome, mark: Mark) -> RunError | None:
    if mark.status is not Status.FAILED:
        return None
    return mark.error or end.error or RunError("UserError", "the run was marked as Failed from outside")


def _differs(end: Outcome, mark: Mark) -> tuple[str, ...]:
    if end.status is mark.status and (end.error is None or mark.error is None):
        return ()
    why = f": {end.error.message.partition(chr(10))[0]}" if end.error else ""
    return (f"without the mark it would be {end.status}{why}",)
