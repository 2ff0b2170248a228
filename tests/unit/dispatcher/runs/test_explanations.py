"""Why a run is as it is."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.runs.explanations import explain_run
from trainmaster.dispatcher.runs.hangs import hang_error
from trainmaster.shared.attempts import FailedAttempt
from trainmaster.shared.records import RunError, RunRecord, Status


def make_run(status: Status = Status.FAILED, **fields) -> RunRecord:
    return RunRecord("run", "exp", status, 1.0, **fields)


@pytest.mark.parametrize("status", list(Status))
def test_every_state_has_a_reason(status):
    assert explain_run(make_run(status)).reason


def test_what_it_waits_for_is_the_reason():
    waiting = make_run(Status.QUEUED, waiting_for="it waits for 2 nodes of 'gpu'")
    assert explain_run(waiting).reason == "it waits for 2 nodes of 'gpu'"
    assert explain_run(make_run(Status.COMPLETED), ending="all trials have ended").reason == "all trials have ended"


def test_the_stacks_of_a_hang_are_there_by_rank():
    stack = 'Current thread 0x1 (most recent call first):\n  File "/w/runs/x/code/train.py", line 3 in wait\n'
    records = [{"rank": 1, "stack": stack}, {"rank": 0, "stack": stack}]
    found = explain_run(make_run(error=hang_error(records, 60)))
    assert found.code == "HangDetected" and found.hang_seconds == 60
    assert [each.rank for each in found.stacks] == [0, 1] and found.stacks[0].text == stack
    assert found.stacks[0].lines == ('File "train.py", line 3 in wait',)


def test_details_of_another_kind_do_no_harm():
    """They come from a file that a script can change."""
    details = {"rank": "x", "node": True, "exit_code": None, "stacks": [1], "tail": None, "hang_seconds": "long"}
    found = explain_run(make_run(error=RunError("Odd", "", details)))
    assert (found.rank, found.node, found.exit_code, found.stacks, found.last_lines) == (None, None, None, (), ())
    assert found.reason == "It failed."


def test_earlier_attempts_come_along():
    attempt = FailedAttempt(1, RunError("ScriptFailed", "boom"), 1.0, 2.0)
    assert explain_run(make_run(Status.RUNNING), [attempt]).attempts == (attempt,)
