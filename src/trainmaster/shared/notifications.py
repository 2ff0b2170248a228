"""Notifications as plain data: channels by which people hear of runs, and the settings of e-mail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Event = Literal["completed", "failed", "canceled", "hung"]
EVENTS: tuple[Event, ...] = ("completed", "failed", "canceled", "hung")
"""What can happen to a run. A run that was ended because it hung has also failed, but is reported as hung only."""

Kind = Literal["command", "webhook", "email"]

Security = Literal["starttls", "tls", "none"]

TAG = "notify"
"""The tag of a run that names channels, separated by commas."""

WHOLE_WORKSPACE = ""
"""The owner of a channel that is for the runs of all users."""


@dataclass(frozen=True)
class Channel:
    """A way to tell people of runs. Keys and passwords are not part of it."""

    name: str
    kind: Kind
    address: str
    """A command, a URL, or e-mail addresses separated by commas."""
    owner: str = WHOLE_WORKSPACE
    """A user: for runs that this user submits. Or `WHOLE_WORKSPACE`."""
    events: tuple[Event, ...] = EVENTS
    experiment: str = ""
    """Only runs of this experiment; empty for all."""
    only_chosen: bool = False
    """Whether only runs that name the channel are reported. Otherwise all runs without a parent are."""
    is_signed: bool = False
    created_by: str = ""
    created_at: float = 0.0
    last_sent_at: float | None = None
    last_error: str = ""
    """Why the last notification could not be delivered; empty after one that was."""


@dataclass(frozen=True)
class SmtpSettings:
    """How e-mail is sent. The password is not part of it."""

    host: str
    port: int = 587
    security: Security = "starttls"
    user: str = ""
    sender: str = ""
    """The address that notifications come from."""


@dataclass(frozen=True)
class DeliveryResult:
    """Whether a notification was delivered, and if not, why."""

    is_delivered: bool
    error: str = ""
