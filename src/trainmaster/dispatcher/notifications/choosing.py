"""Which channels hear of a run, and what they are told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from trainmaster.shared.notifications import TAG, WHOLE_WORKSPACE, Channel, Event
from trainmaster.shared.records import RunRecord, Status

_HANG = "HangDetected"
_LONGEST_MESSAGE = 10_000
_EVENTS: dict[Status, Event] = {Status.COMPLETED: "completed", Status.FAILED: "failed", Status.CANCELED: "canceled"}


def event_of(record: RunRecord) -> Event | None:
    """What has happened to a run; None if it has not ended."""
    if record.status is Status.FAILED and record.error is not None and record.error.code == _HANG:
        return "hung"
    return _EVENTS.get(record.status)


def names_of(record: RunRecord) -> frozenset[str]:
    """The channels that a run names.

    >>> names_of(RunRecord("a", "a", Status.QUEUED, 0.0, tags={"notify": "slack, me"})) == {"slack", "me"}
    True
    """
    return frozenset(filter(None, (name.strip() for name in str(record.tags.get(TAG) or "").split(","))))


def choose_channels(channels: Iterable[Channel], record: RunRecord, event: Event) -> list[Channel]:
    """The channels that hear of this event of this run."""
    return [channel for channel in channels if _hears(channel, record, event)]


def _hears(channel: Channel, record: RunRecord, event: Event) -> bool:
    if channel.owner != WHOLE_WORKSPACE and channel.owner != record.submitted_by:
        return False
    if event not in channel.events:
        return False
    if channel.name in names_of(record):
        return True
    is_wanted = not channel.experiment or channel.experiment == record.experiment
    return is_wanted and not channel.only_chosen and record.parent_id is None


def make_message(record: RunRecord, event: str, workspace: str, page: str) -> dict[str, Any]:
    """What a channel is told of a run. The id of the notification is added when it is sent."""
    started, ended = record.started_at, record.ended_at
    error = record.error
    return {
        "event": event,
        "workspace": workspace,
        "run": {
            "id": record.id,
            "display_name": record.display_name or record.id,
            "experiment": record.experiment,
            "number": record.number,
            "status": str(record.status),
            "error": None if error is None else {"code": error.code, "message": error.message[:_LONGEST_MESSAGE]},
            "submitted_by": record.submitted_by,
            "target": record.target,
            "tags": dict(record.tags),
            "created_at": _iso(record.created_at),
            "started_at": _iso(started),
            "ended_at": _iso(ended),
            "duration_seconds": None if started is None or ended is None else round(ended - started, 3),
        },
        "page": page or None,
    }


_SENTENCES = {
    "completed": "has completed",
    "failed": "has failed",
    "canceled": "was canceled",
    "hung": "hung and was ended",
    "test": "is a test",
}


def make_subject(message: dict[str, Any]) -> str:
    """One line that says what has happened."""
    run = message["run"]
    text = f"[{message['workspace']}] {run['experiment']}: {run['display_name']} {_SENTENCES[message['event']]}"
    return "".join(letter if letter.isprintable() else " " for letter in text)[:300]


def make_text(message: dict[str, Any]) -> str:
    """The same for an e-mail: the reason of a failure, and where to look."""
    run = message["run"]
    seconds = run["duration_seconds"]
    lines = [
        f"Run {run['id']} {_SENTENCES[message['event']]}.",
        "",
        f"name        {run['display_name']}",
        f"experiment  {run['experiment']} (run {run['number']})",
        f"workspace   {message['workspace']}",
        f"state       {run['status']}",
        f"took        {seconds:.1f} s" if seconds is not None else "",
        f"by          {run['submitted_by']}",
        f"page        {message['page']}" if message["page"] else "",
    ]
    text = "\n".join(line for number, line in enumerate(lines) if line or number == 1)
    return f"{text}\n\n{run['error']['message']}\n" if run["error"] else f"{text}\n"


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
