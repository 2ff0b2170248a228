"""Who logs to a run that has no job: noted in the run, so that it does not stay Running when that program has died."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.job.agent import process
from trainmaster.shared.host import host_name
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

OWNER = "trainmaster.owner"
LEASE = "trainmaster.lease"
"""The property of a run whose program is on another machine: for how many seconds it stays Running without news."""

USUAL_LEASE = 1800.0
"""Long enough for a network that is gone for a while: what the program logs meanwhile is delivered later."""

_SHORTEST_LEASE, _LONGEST_LEASE = 5.0, 86400.0


@dataclass(frozen=True)
class Owner:
    """One process for ever: its id, when it began, and on which boot of which machine."""

    host: str
    pid: int
    start_time: int
    boot_id: str

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine; what happens on another one is not known here."""
        return self.host == host_name()

    @property
    def lives(self) -> bool:
        """Whether it is still there, if it is a process of this machine."""
        return bool(process.is_alive(self.pid, self.start_time, self.boot_id))


def this_program() -> dict[str, str]:
    """The property that names this program."""
    pid = os.getpid()
    owner = Owner(host_name(), pid, process.start_time(pid) or 0, process.boot_id())
    return {OWNER: json.dumps(to_plain(owner), sort_keys=True)}


def owner_of(properties: Mapping[str, str]) -> Owner | None:
    """The program that a run's properties name, if they do."""
    try:
        return from_plain(Owner, json.loads(properties[OWNER]))
    except (KeyError, ValueError, PlainDataError):
        return None


def program_with_lease(seconds: float = USUAL_LEASE) -> dict[str, str]:
    """The property of a run whose program renews a lease (`runs.renew`), because its process cannot be watched."""
    return {LEASE: f"{limit_lease(seconds):g}"}


def lease_of(properties: Mapping[str, str]) -> float | None:
    """The seconds of a run's lease; None if it has none."""
    try:
        return limit_lease(float(properties[LEASE]))
    except (KeyError, ValueError):
        return None


def limit_lease(seconds: float) -> float:
    """The seconds within the limits for leases.

    >>> limit_lease(0), limit_lease(120), limit_lease(float("nan"))
    (5.0, 120, 5.0)
    """
    return min(max(_SHORTEST_LEASE, seconds), _LONGEST_LEASE)
