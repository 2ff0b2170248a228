"""Which channels hear of which runs, as a table, and what they are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainmaster.dispatcher.notifications.choosing import (
    choose_channels,
    event_of,
    make_message,
    make_subject,
    make_text,
)
from trainmaster.shared.notifications import Channel
from trainmaster.shared.records import RunError, RunRecord, Status


def run(status: Status = Status.COMPLETED, code: str = "", **more: Any) -> RunRecord:
    error = RunError(code, f"{code} happened") if code else None
    return RunRecord("mnist_1", "mnist", status, 0.0, submitted_by="ann", error=error, **more)


CHOSEN = {"notify": "other, here"}
TABLE = [
    ({}, run(), True),
    ({}, run(Status.FAILED), True),
    ({}, run(Status.RUNNING), False),
    ({}, run(parent_id="sweep"), False),
    ({}, run(parent_id="sweep", tags=CHOSEN), True),
    ({"owner": "ann"}, run(), True),
    ({"owner": "bob"}, run(), False),
    ({"owner": "bob"}, run(tags=CHOSEN), False),
    ({"events": ("failed", "hung")}, run(), False),
    ({"events": ("failed", "hung")}, run(tags=CHOSEN), False),
    ({"events": ("failed",)}, run(Status.FAILED, "ScriptFailed"), True),
    ({"events": ("failed",)}, run(Status.FAILED, "HangDetected"), False),
    ({"events": ("hung",)}, run(Status.FAILED, "HangDetected"), True),
    ({"events": ("canceled",)}, run(Status.CANCELED), True),
    ({"only_chosen": True}, run(), False),
    ({"only_chosen": True}, run(tags=CHOSEN), True),
    ({"only_chosen": True}, run(tags={"notify": "here2"}), False),
    ({"only_chosen": True}, run(tags={"notify": None}), False),
    ({"experiment": "mnist"}, run(), True),
    ({"experiment": "other"}, run(), False),
    ({"experiment": "other"}, run(tags=CHOSEN), True),
]


@pytest.mark.parametrize(("settings", "record", "hears"), TABLE)
def test_who_hears_of_a_run(settings: dict[str, Any], record: RunRecord, hears: bool) -> None:
    channel = Channel("here", "email", "ann@example.org", **settings)
    event = event_of(record)
    assert (event is not None and choose_channels([channel], record, event) == [channel]) is hears


def test_what_is_told() -> None:
    record = run(Status.FAILED, "ScriptFailed", started_at=1.0, ended_at=3.5, display_name="first\r\nBcc: x@y.z")
    message = make_message(record, "failed", "vision", "https://example.org/w/vision/runs/mnist_1")
    assert json.loads(json.dumps(message)) == message
    assert message["run"]["duration_seconds"] == 2.5
    assert message["run"]["error"] == {"code": "ScriptFailed", "message": "ScriptFailed happened"}
    assert make_subject(message) == "[vision] mnist: first  Bcc: x@y.z has failed"
    text = make_text(message)
    assert text.startswith("Run mnist_1 has failed.\n\nname ") and text.endswith("\n\nScriptFailed happened\n")
    assert "page        https://example.org/w/vision/runs/mnist_1\n" in text
