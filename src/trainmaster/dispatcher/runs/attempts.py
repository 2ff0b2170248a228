"""Moves a run from a failed attempt to the next one: its logs, the pause, its error (docs/internals/run-lifecycle.md).

An attempt has failed once its `failure.json` exists, which appears by one rename. From then on, the next attempt is the
current one. The next dispatcher can repeat all other steps.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

from trainmaster.dispatcher.runs.outcome import Outcome
from trainmaster.job.agent import durable
from trainmaster.shared import beneath
from trainmaster.shared.attempts import FailedAttempt
from trainmaster.shared.folders import RunFolder
from trainmaster.shared.json_files import read_json
from trainmaster.shared.private import open_private
from trainmaster.shared.records import RunError, Status
from trainmaster.shared.retry import pause_after
from trainmaster.shared.serialization import to_plain

# A run that could not be started fails the same way again.
_FINAL = frozenset({"StartError"})
_LONGEST_PAUSE = 60.0
# Logs from before the job belong to the run, not to an attempt.
_BEFORE_THE_JOB = re.compile(r"(?:20|55|60|65)_")


def deserves_another(end: Outcome, survivors: bool) -> bool:
    """Whether another attempt makes sense: not after a cancel, and not if the job cannot be started.

    Also not while processes are left that could not be ended: they would write to the same files.
    """
    return end.status is Status.FAILED and end.error is not None and end.error.code not in _FINAL and not survivors


def note_failure(folder: RunFolder, failed: FailedAttempt) -> None:
    """Records the failure; from now on the next attempt is the current one."""
    durable.make_folder(folder.failure.parent)
    durable.write(folder.failure, json.dumps({"version": 1, **to_plain(failed)}).encode())


def set_logs_apart(folder: RunFolder, sentence: str) -> None:
    """Ends the logs of a failed attempt with `sentence` and moves them to their own folder. May be repeated.

    Call it only before the next attempt has a plan, because that attempt writes to the same place.
    """
    place = folder.attempt_logs
    place.mkdir(parents=True, exist_ok=True)
    for log in {*folder.logs.glob("70_driver_log*.txt"), *_first_log(folder)}:
        if not (place / log.name).exists():
            _end_with(log, sentence)
    for path in sorted(folder.logs.iterdir()):
        if not path.is_dir() and not _BEFORE_THE_JOB.match(path.name):
            beneath.rename(folder.logs, path.name, f"{place.name}/{path.name}")


def pause_seconds(failed: FailedAttempt, now: float, first: float) -> float:
    """How long to wait before the attempt after `failed`: twice as long each time.

    >>> failed = FailedAttempt(3, RunError("ScriptFailed", ""), None, ended_at=100.0)
    >>> pause_seconds(failed, now=101.0, first=1.0)
    3.0
    """
    pause = pause_after(failed.number, first, _LONGEST_PAUSE)
    return min(pause, max(0.0, failed.ended_at + pause - now))


def first_pause() -> float:
    """Seconds between the first failure and the second attempt."""
    try:
        given = float(os.environ.get("TRAINMASTER_RETRY_SECONDS", "1"))
    except ValueError:
        return 1.0
    return given if 0 <= given <= 3600 else 1.0


def with_attempts(error: RunError | None, status: Status, number: int) -> RunError | None:
    """Adds the number of attempts to the last error of a run."""
    if error is None or number == 1:
        return error
    if status is Status.FAILED:
        message = f"{number} attempts failed; the last one: {error.message}"
    else:
        message = f"{error.message}\nIt was attempt {number}."
    return replace(error, message=message, details={**error.details, "attempts": number})


def _first_log(folder: RunFolder) -> list[Path]:
    """The log of rank 0, even if rank 0 never started."""
    plan = read_json(folder.node(0) / "plan.json") or {}
    processes = plan.get("ranks") or plan.get("processes") or []
    return [Path(process["log"]) for process in processes if process.get("rank") == 0]


def _end_with(log: Path, sentence: str) -> None:
    line = sentence.encode() + b"\n"
    with open(log, "ab+", opener=open_private) as file:
        size = file.tell()
        file.seek(max(0, size - len(line)))
        end = file.read()
        if end != line:
            file.write(line if not end or end.endswith(b"\n") else b"\n" + line)
