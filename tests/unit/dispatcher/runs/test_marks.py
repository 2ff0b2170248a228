"""What a mark from outside makes of the outcome of a run."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.runs.marks import Mark, apply_mark, mark_of, mark_property
from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.shared.records import RunError, Status

OWN = RunError("ScriptFailed", "rank 0 ended with exit code 3\nits tail")
GIVEN = RunError("Mine", "because")


@pytest.mark.parametrize(
    ("mark", "end", "status", "code", "warnings"),
    [
        (None, Outcome(Status.FAILED, OWN, ("w",)), Status.FAILED, "ScriptFailed", ["w"]),
        (Mark(Status.COMPLETED), Outcome(Status.COMPLETED), Status.COMPLETED, None, []),
        (
            Mark(Status.COMPLETED),
            Outcome(Status.FAILED, OWN, ("w",)),
            Status.COMPLETED,
            None,
            ["w", "without the mark it would be Failed: rank 0 ended with exit code 3"],
        ),
        (
            Mark(Status.FAILED, GIVEN),
            Outcome(Status.FAILED, OWN),
            Status.FAILED,
            "Mine",
            ["without the mark it would be Failed: rank 0 ended with exit code 3"],
        ),
        (Mark(Status.FAILED), Outcome(Status.FAILED, OWN), Status.FAILED, "ScriptFailed", []),
        (
            Mark(Status.FAILED),
            Outcome(Status.CANCELED),
            Status.FAILED,
            "UserError",
            ["without the mark it would be Canceled"],
        ),
    ],
)
def test_marked(mark, end, status, code, warnings):
    found = apply_mark(end, mark)
    assert found.status is status
    assert (found.error.code if found.error else None) == code
    assert list(found.warnings) == warnings


def test_kept_as_a_property():
    mark = Mark(Status.FAILED, GIVEN)
    assert mark_of(mark_property(mark)) == mark


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"status": "Canceled"}', '{"status": "Running"}', '{"status": 5}'])
def test_what_is_no_mark(text):
    assert mark_of({"trainmaster.mark": text}) is None
