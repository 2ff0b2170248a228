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
