"""A run as rows and JSON."""

from __future__ import annotations

import json

from trainmaster.cli.runs import statuses, table_row
from trainmaster.sdk.display.describing import reason, run_as_json, style_of, took
from trainmaster.sdk.display.metric_values import metric_row
from trainmaster.shared.records import MetricSeries, MetricSummary, RunError, RunRecord, Status

KEYS = {
    "id", "experiment", "number", "display_name", "parent_id", "type", "target", "status", "waiting_for", "error",
    "warnings", "created_at", "started_at", "ended_at", "duration_seconds", "snapshot_id", "submitted_by", "tags",
}  # fmt: skip
QUEUED = RunRecord("a_1", "a", Status.QUEUED, 100.0, waiting_for="waiting for 1 of 2 nodes")
FAILED = RunRecord(
    "a_2", "a", Status.FAILED, 100.0, started_at=101.0, ended_at=103.5,
    error=RunError("ScriptFailed", "rank 0 ended with exit code 1\nThe last lines", {"rank": 0, "exit_code": 1}),
)  # fmt: skip


def test_the_keys_are_stable() -> None:
    assert set(run_as_json(QUEUED)) == set(run_as_json(FAILED)) == KEYS
    assert json.loads(json.dumps(run_as_json(FAILED)))["error"]["exit_code"] == 1
    assert run_as_json(FAILED)["duration_seconds"] == 2.5


def test_a_row_says_why() -> None:
    assert table_row(QUEUED, 200.0)[-1] == "waiting for 1 of 2 nodes"
    assert table_row(FAILED, 200.0)[2:4] == ("Failed", "2.50 s")
    assert reason(FAILED) == "rank 0 ended with exit code 1"


def test_a_run_takes_time_only_once_it_has_started() -> None:
    assert took(QUEUED, 200.0) is None
    assert took(RunRecord("a", "a", Status.RUNNING, 1.0, started_at=10.0), 15.0) == 5.0
    assert took(RunRecord("a", "a", Status.RUNNING, 1.0, started_at=10.0), 9.0) == 0.0


def test_states_by_word() -> None:
    assert statuses(["ended"]) == ("Canceled", "Completed", "Failed")
    assert statuses(["cancelled", "RUNNING"]) == ("Canceled", "Running")
    assert statuses(None) == ()
    assert style_of("Completed") == "green"
    assert style_of("unheard of") == ""


def test_a_long_value_of_a_metric_is_shortened() -> None:
    text = "a long text\n" * 500
    row = metric_row(MetricSummary("notes", "scalar", 2, text), MetricSeries("notes", "scalar", 2, (text, text)))
    assert row[:2] == ("notes", "a long text a long text a long text a...")
