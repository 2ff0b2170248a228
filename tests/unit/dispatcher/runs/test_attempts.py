"""Which failures deserve another attempt, and what is kept of each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from trainmaster.dispatcher.runs.attempts import (
    deserves_another,
    note_failure,
    pause_seconds,
    set_logs_apart,
    with_attempts,
)
from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.shared.attempts import FailedAttempt, current_attempt, read_failed_attempts
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.records import RunError, Status

FIRST = FailedAttempt(
    1, RunError("ScriptFailed", "rank 0 failed\nThe last lines: a", {"rank": 0}), started_at=10.0, ended_at=12.5
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.logs.mkdir(parents=True)
    return made


@pytest.mark.parametrize("code", ["ScriptFailed", "ScriptKilled", "OutOfMemory", "HangDetected", "NodeAgentLost"])
def test_what_failed_while_it_ran_is_tried_again(code: str) -> None:
    assert deserves_another(Outcome(Status.FAILED, RunError(code, "")), survivors=False)


@pytest.mark.parametrize(
    ("end", "survivors"),
    [
        (Outcome(Status.COMPLETED), False),
        (Outcome(Status.CANCELED), False),
        (Outcome(Status.CANCELED, RunError("MaxRunDurationExceeded", "")), False),
        (Outcome(Status.FAILED, RunError("StartError", "")), False),
        (Outcome(Status.FAILED, RunError("ScriptFailed", "")), True),
    ],
)
def test_what_is_not_tried_again(end: Outcome, survivors: bool) -> None:
    assert not deserves_another(end, survivors)


def test_the_current_attempt_is_the_first_that_has_not_failed(folder: RunFolder) -> None:
    assert (current_attempt(folder), read_failed_attempts(folder)) == (folder, [])
    note_failure(folder, FIRST)
    second = current_attempt(folder)
    assert (second.attempt, read_failed_attempts(second), read_failed_attempts(folder)) == (2, [FIRST], [FIRST])
    note_failure(second, replace(FIRST, number=2))
    assert current_attempt(folder).attempt == 3
    assert [each.number for each in read_failed_attempts(folder)] == [1, 2]
    assert (FIRST.headline, FIRST.seconds) == ("rank 0 failed", 2.5)


def test_no_place_of_a_claim_is_used_twice(folder: RunFolder) -> None:
    places = {replace(folder, attempt=number).node(node) for number in (1, 2, 3) for node in (0, 1)}
    assert len(places) == 6
    assert folder.node(1) == folder.path / "nodes" / "1"


def test_a_damaged_record_is_a_failure_nevertheless(folder: RunFolder) -> None:
    note_failure(folder, FIRST)
    folder.failure.write_text("{")
    assert current_attempt(folder).attempt == 2
    assert "cannot be read" in read_failed_attempts(folder)[0].headline


def test_logs_are_set_apart_once_however_often_it_is_done(folder: RunFolder) -> None:
    driver, second = folder.logs / "70_driver_log_0.txt", folder.logs / "70_driver_log_1.txt"
    driver.write_text("in the middle of a line")
    second.write_text("whole\n")
    (folder.logs / "process_info.json").write_text("[]")
    (folder.logs / "20_image_build_log.txt").write_text("built\n")
    (folder.logs / "65_job_prep-0.txt").write_text("copied\n")
    set_logs_apart(folder, "it failed")
    kept = folder.attempt_logs
    assert kept == folder.logs / "attempt_1"
    # Killed before the second move: the first log was set apart, the other has its last line already.
    (kept / "70_driver_log_1.txt").rename(second)
    set_logs_apart(folder, "it failed")
    set_logs_apart(folder, "it failed")
    assert (kept / "70_driver_log_0.txt").read_text() == "in the middle of a line\nit failed\n"
    assert (kept / "70_driver_log_1.txt").read_text() == "whole\nit failed\n"
    assert sorted(path.name for path in folder.logs.iterdir()) == [
        "20_image_build_log.txt",
        "65_job_prep-0.txt",
        "attempt_1",
    ]
    assert (kept / "process_info.json").exists()


def test_an_attempt_that_printed_nothing_leaves_a_log_too(folder: RunFolder) -> None:
    folder.node(0).mkdir(parents=True)
    log = str(folder.logs / "70_driver_log_0.txt")
    ranks = [{"rank": 0, "log": log}, {"rank": 1, "log": str(folder.logs / "70_driver_log_1.txt")}]
    (folder.node(0) / "plan.json").write_text(json.dumps({"processes": [{"rank": 0, "log": "x"}], "ranks": ranks}))
    set_logs_apart(folder, "it failed")
    assert [path.name for path in folder.attempt_logs.iterdir()] == ["70_driver_log_0.txt"]
    assert (folder.attempt_logs / "70_driver_log_0.txt").read_text() == "it failed\n"


@pytest.mark.parametrize(("number", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (5000, 60)])
def test_the_pause_doubles_up_to_a_minute(number: int, seconds: float) -> None:
    assert pause_seconds(replace(FIRST, number=number, ended_at=100.0), now=100.0, first=1.0) == seconds


def test_a_pause_that_has_passed_is_over() -> None:
    assert pause_seconds(FIRST, now=13.0, first=1.0) == 0.5
    assert pause_seconds(FIRST, now=1000.0, first=1.0) == 0.0
    # A clock that was set back does not make it longer.
    assert pause_seconds(FIRST, now=0.0, first=1.0) == 1.0


def test_the_last_error_says_how_many_attempts_there_were() -> None:
    error = RunError("ScriptFailed", "rank 0 failed\nand its tail", {"rank": 0})
    assert with_attempts(error, Status.FAILED, 1) is error
    told = with_attempts(error, Status.FAILED, 3)
    assert told is not None
    assert told.message == "3 attempts failed; the last one: rank 0 failed\nand its tail"
    assert told.details == {"rank": 0, "attempts": 3}
    late = with_attempts(RunError("MaxRunDurationExceeded", "too long"), Status.CANCELED, 2)
    assert late is not None
    assert late.message == "too long\nIt was attempt 2."
    assert with_attempts(None, Status.COMPLETED, 2) is None
